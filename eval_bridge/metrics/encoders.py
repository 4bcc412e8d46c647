"""Encoders of pictures and texts: open_clip's models, vision models of transformers (DINOv2 for one), CSD, Inception.

`NAME@WEIGHTS` is a model of open_clip's list with its weights' tag, or with a checkpoint's path; `hf-hub:ORG/REPO` and
`local-dir:FOLDER` name model and weights at once. A transformers model is a name or a folder. Nothing is fetched by
transformers or open_clip unless its files are on this machine; nothing is fetched.

Models that may not be shipped or used commercially (face recognition, the AGPL aesthetic predictor) are plug-ins: any
class with `encode_images` (`ImageEncoder`), named `package.module:Class` or by an entry point in `katha.encoders`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from katha.errors import AbsentModelError, InputFileError, ModelError, UsageError
from katha.eval_bridge.metrics.features import ImageEncoder, Vectors
from katha.jsonio import digest, file_sha256, sha256_hex
from katha.models.checkpoints import best_device, find_folder, folder_revision, need
from katha.pictures import decode
from katha.registry import default_registry

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WHOLE = ("hf-hub:", "local-dir:")


class OpenClipEncoder:
    """Pictures and texts in one space by a model of open_clip; rows of length 1. Loads on first use.

    A text that is longer than the model's context is encoded sentence by sentence, and the mean is taken, unless
    `cut`: then it ends where the context does, as CLIP's own tokenizer has it.
    """

    def __init__(self, argument: str | None, *, device: str | None = "cpu", cut: bool = False) -> None:
        """Read the model's name; nothing is loaded yet. device: None is the accelerator if there is one.

        Raises:
            UsageError: no model is named, or no weights.
        """
        if not argument:
            raise UsageError(
                "open-clip needs a model.",
                hint="Write open-clip:ViT-B-32@laion2b_s34b_b79k, or open-clip:hf-hub:timm/ViT-B-16-SigLIP.",
            )
        self.argument = argument
        whole = argument.startswith(_WHOLE)
        self._name, _, weights = (argument, "", "") if whole else argument.partition("@")
        if not whole and not weights:
            hint = f"Write open-clip:{argument}@TAG (`open_clip.list_pretrained()` lists them) or ...@CHECKPOINT."
            raise UsageError(f"open-clip:{argument} names no weights.", hint=hint)
        self._weights: str | None = weights or None
        self._wanted, self._cut = device, cut

    @cached_property
    def _device(self) -> str:
        return self._wanted or best_device()

    def spec(self) -> Mapping[str, Any]:
        """Name, weights (by the hash of their values), package version, and the kind of device where it is
        not a CPU."""
        kind = self._device.partition(":")[0]
        spec = {
            "name": "open-clip",
            "version": 1,
            "model": self._name,
            "weights": self._weights_sha256,
            "open_clip": str(need("open_clip", "An open_clip model", "local").__version__),
        }
        return {**spec, **({} if kind == "cpu" else {"device": kind}), **({"cut": True} if self._cut else {})}

    def encode_images(self, images: Sequence[bytes]) -> Vectors:
        """Return rows of length 1, shape (N, D)."""
        import torch

        model, prepare, _ = self._loaded
        batch = torch.stack([prepare(decode(data)) for data in images]).to(self._device)
        with torch.inference_mode():
            return _rows(model.encode_image(batch, normalize=True))

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return rows, shape (N, D); of length 1 where the text fits into the context."""
        return np.stack([self._text(text) for text in texts])

    @cached_property
    def _loaded(self) -> tuple[Any, Any, Any]:
        """The model, what prepares a picture for it, and its tokenizer."""
        open_clip = need("open_clip", "An open_clip model", "local")
        name, weights = self._on_this_machine(open_clip)
        try:
            model, _, prepare = open_clip.create_model_and_transforms(name, pretrained=weights, device=self._device)
            tokenizer = open_clip.get_tokenizer(name)
        except Exception as error:
            kind = type(error).__name__
            raise UsageError(
                f"The open_clip model {self._name!r} with weights {self._weights!r} cannot be loaded: {kind}: {error}",
                hint="Fetch the weights first, or name a checkpoint on this machine after '@'.",
            ) from error
        model.eval()
        return model, prepare, tokenizer

    def _on_this_machine(self, open_clip: Any) -> tuple[str, str | None]:
        """Return the name and weights by which open_clip reads files that are here, where it would fetch others.

        Raises:
            AbsentModelError: they are not here; the hint is the command that fetches them.
        """
        known = open_clip.get_pretrained_cfg(self._name, self._weights) if self._weights else {}
        online, whole = known.get("hf_hub", "").rstrip("/"), self._name.removeprefix("hf-hub:")
        if self._name.startswith("hf-hub:"):
            return f"local-dir:{_hub_folder(whole)}", None
        if not online:
            cached = Path("~/.cache/clip").expanduser() / known.get("url", "").rpartition("/")[2]
            if known.get("url") and not cached.is_file():
                raise AbsentModelError(
                    f"The weights {self._weights!r} of {self._name!r} are not on this machine.",
                    hint=f"Fetch {known['url']} into {cached.parent}.",
                )
            return self._name, self._weights
        folder = _hub_folder(online)
        files = sorted([*folder.glob("open_clip*.safetensors"), *folder.glob("open_clip*.bin"), *folder.glob("*.pt")])
        if not files:
            raise AbsentModelError(f"{str(folder)!r} holds no weights.", hint=f"Run `hf download {online}`.")
        return self._name, str(next((file for file in files if file.suffix == ".safetensors"), files[0]))

    @cached_property
    def _weights_sha256(self) -> str:
        return _state_sha256(self._loaded[0])

    def _text(self, text: str) -> Vectors:
        parts = [text] if self._cut or not self._overflows(text) else _SENTENCE.split(text)
        found = np.mean([self._tokens(part) for part in parts], axis=0)
        return np.asarray(found, dtype=np.float64)

    def _overflows(self, text: str) -> bool:
        """Return whether the context ends before the text does: more of it changes nothing but the last place."""
        tokenizer = self._loaded[2]
        row, more = (tokenizer([words])[0].tolist() for words in (text, f"{text} and more"))
        return bool(row[:-1] == more[:-1])

    def _tokens(self, text: str) -> Vectors:
        import torch

        model, _, tokenizer = self._loaded
        with torch.inference_mode():
            row: Vectors = _rows(model.encode_text(tokenizer([text]).to(self._device), normalize=True))[0]
            return row


def _hub_folder(name: str) -> Path:
    try:
        return find_folder(name)
    except ModelError as error:
        raise AbsentModelError(error.message, hint=error.hint) from error


class VisionEncoder:
    """Pictures by a vision model of transformers: the class token of its last layer, as DINO's similarity takes it."""

    def __init__(self, argument: str | None, *, device: str = "cpu") -> None:
        """Find the model's folder; nothing is loaded yet.

        Raises:
            UsageError: no model is named. ModelError, InputFileError: it is not on this machine, or broken.
        """
        if not argument:
            raise UsageError("The vision model has no name.", hint="Write facebook/dinov2-base, or a folder.")
        need("transformers", "A vision model", "local")
        self._name, self._device = argument, device
        self._folder = find_folder(argument)

    def spec(self) -> Mapping[str, Any]:
        """Name, revision of the files and package version."""
        version = str(need("transformers", "A vision model", "local").__version__)
        return {
            "name": "vision",
            "version": 1,
            "model": self._name,
            "revision": self._revision,
            "transformers": version,
        }

    @cached_property
    def _revision(self) -> str:
        return folder_revision(self._folder)

    def encode_images(self, images: Sequence[bytes]) -> Vectors:
        """Return class tokens, shape (N, D), as they come."""
        import torch

        model, processor = self._loaded
        batch = processor(images=[decode(data) for data in images], return_tensors="pt").to(self._device)
        with torch.inference_mode():
            return _rows(model(**batch).last_hidden_state[:, 0])

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        transformers = need("transformers", "A vision model", "local")
        try:
            model = transformers.AutoModel.from_pretrained(self._folder, local_files_only=True, use_safetensors=True)
            processor = transformers.AutoImageProcessor.from_pretrained(self._folder, local_files_only=True)
        except Exception as error:
            raise UsageError(
                f"The vision model {self._name!r} cannot be loaded: {type(error).__name__}: {error}",
                hint="Name a model with safetensors weights and an image processor.",
            ) from error
        return model.to(self._device).eval(), processor


class InceptionEncoder:
    """Class probabilities by torchvision's Inception v3, as the inception score wants them: rows of 1,000.

    `inception` is torchvision's own ImageNet checkpoint (fetched on first use), `inception:FILE` a state dict.
    """

    def __init__(self, argument: str | None = None) -> None:
        """Check the file's place; nothing is loaded yet.

        Raises:
            InputFileError: there is no such file.
        """
        self._file = Path(argument) if argument else None
        if self._file is not None and not self._file.is_file():
            raise InputFileError(f"inception: there is no file {argument!r}.", hint="Name a state dict (.pth).")

    def spec(self) -> Mapping[str, Any]:
        """Name, weights (by hash where a file holds them) and package version."""
        version = str(need("torchvision", "Inception v3", "local").__version__)
        weights = sha256_hex(self._file.read_bytes()) if self._file is not None else "IMAGENET1K_V1"
        return {"name": "inception", "version": 1, "weights": weights, "torchvision": version}

    def encode_images(self, images: Sequence[bytes]) -> Vectors:
        """Return softmax probabilities, shape (N, 1000)."""
        import torch

        model, prepare = self._loaded
        batch = torch.stack([prepare(decode(data)) for data in images])
        with torch.inference_mode():
            return np.asarray(model(batch).softmax(dim=1).numpy(), dtype=np.float64)

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        models = need("torchvision.models", "Inception v3", "local")
        transforms = need("torchvision.transforms", "Inception v3", "local")
        import torch

        weights = models.Inception_V3_Weights.IMAGENET1K_V1 if self._file is None else None
        model = models.inception_v3(weights=weights, init_weights=False, transform_input=False, aux_logits=True)
        if self._file is not None:
            model.load_state_dict(torch.load(self._file, map_location="cpu", weights_only=True))
        means, deviations = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
        steps = [transforms.Resize(299), transforms.CenterCrop(299), transforms.ToTensor()]
        return model.eval(), transforms.Compose([*steps, transforms.Normalize(means, deviations)])


class InceptionFeatures(InceptionEncoder):
    """What Inception v3 sees before it names anything, as FID wants it: rows of 2,048, pictures at 299x299 without a
    crop.

    `inception-features` is torchvision's own ImageNet checkpoint, `inception-features:FILE` a state dict for its model.
    """

    def spec(self) -> Mapping[str, Any]:
        """Name, weights and package version."""
        return {**super().spec(), "name": "inception-features"}

    def encode_images(self, images: Sequence[bytes]) -> Vectors:
        """Return the averaged features of the last layer but one, shape (N, 2048)."""
        import torch

        model, prepare = self._loaded
        batch = torch.stack([prepare(decode(data).resize((299, 299), resample=2)) for data in images])
        head, model.fc = model.fc, torch.nn.Identity()
        try:
            with torch.inference_mode():
                return _rows(model(batch))
        finally:
            model.fc = head


class CsdEncoder:
    """Style vectors by CSD: a CLIP picture tower without its projection, times the style layer of the checkpoint.

    `csd:FILE`: the published checkpoint (ViT-L/14; `backbone.*` and `last_layer_style`). `csd:MODEL@FILE` names another
    picture tower of open_clip. Pictures are resized to a square without a crop (App. J).
    """

    def __init__(self, argument: str | None = None) -> None:
        """Check the file's place; nothing is loaded yet.

        Raises:
            UsageError: no checkpoint is named. InputFileError: there is none at that place.
        """
        if not argument:
            raise UsageError("csd needs its checkpoint.", hint="Write csd:FILE, fetched from its authors.")
        model, _, file = argument.rpartition("@")
        self._model, self._file = model or "ViT-L-14-quickgelu", Path(file)
        if not self._file.is_file():
            raise InputFileError(f"csd: there is no file {file!r}.", hint="Name the checkpoint (.pth).")

    def spec(self) -> Mapping[str, Any]:
        """Name, tower, the checkpoint's hash and package version."""
        version = str(need("open_clip", "CSD", "local").__version__)
        weights = sha256_hex(self._file.read_bytes())
        return {"name": "csd", "version": 1, "model": self._model, "weights": weights, "open_clip": version}

    def encode_images(self, images: Sequence[bytes]) -> Vectors:
        """Return style vectors of length 1, shape (N, D)."""
        import torch

        tower, style, prepare = self._loaded
        batch = torch.stack([prepare(decode(data)) for data in images])
        with torch.inference_mode():
            rows = tower(batch) @ style
            return np.asarray(torch.nn.functional.normalize(rows, dim=1).numpy(), dtype=np.float64)

    @cached_property
    def _loaded(self) -> tuple[Any, Any, Any]:
        open_clip = need("open_clip", "CSD", "local")
        transforms = need("torchvision.transforms", "CSD", "local")
        import torch

        kept = torch.load(self._file, map_location="cpu", weights_only=True)
        state = {name.removeprefix("module."): value for name, value in kept.get("model_state_dict", kept).items()}
        try:
            tower = open_clip.create_model(self._model, pretrained=None).visual
            tower.proj = None
            backbone = {name.removeprefix("backbone."): value for name, value in state.items() if "backbone." in name}
            tower.load_state_dict(backbone)
            style = state["last_layer_style"].float()
        except (RuntimeError, KeyError, AttributeError) as error:
            first = str(error).strip().splitlines()[0]
            raise InputFileError(
                f"{str(self._file)!r} is not a CSD checkpoint for {self._model}: {first}",
                hint="It holds backbone.* and last_layer_style.",
            ) from error
        size = tower.image_size if isinstance(tower.image_size, tuple) else (tower.image_size, tower.image_size)
        bicubic = transforms.InterpolationMode.BICUBIC
        steps = [transforms.Resize(size, interpolation=bicubic), transforms.ToTensor()]
        normal = transforms.Normalize(open_clip.OPENAI_DATASET_MEAN, open_clip.OPENAI_DATASET_STD)
        return tower.float().eval(), style, transforms.Compose([*steps, normal])


_LPIPS_FILES = {
    "alex": "alexnet-owt-7be5be79.pth",
    "squeeze": "squeezenet1_1-b8a52dc0.pth",
    "vgg": "vgg16-397923af.pth",
}
_SIDE = 256


class PerceptualDistance:
    """LPIPS of two pictures by torchmetrics over a network of torchvision, both resized to 256 by 256."""

    def __init__(self, net: str = "alex", *, device: str = "cpu") -> None:
        """net: alex, vgg or squeeze.

        Raises:
            UsageError: there is no such network.
        """
        if net not in _LPIPS_FILES:
            raise UsageError(f"LPIPS has no network {net!r}.", hint=f"Known: {', '.join(_LPIPS_FILES)}.")
        self._net, self._device = net, device

    def spec(self) -> Mapping[str, Any]:
        """Network, the file of its weights, size and package version."""
        version = str(need("torchmetrics", "LPIPS", "metrics").__version__)
        return {
            "name": "lpips",
            "net": self._net,
            "weights": self._weights_sha256,
            "side": _SIDE,
            "torchmetrics": version,
        }

    def compare(self, pairs: Sequence[tuple[bytes, bytes]]) -> Vectors:
        """Return LPIPS of each pair, shape (N,)."""
        import torch

        with torch.inference_mode():
            made = [float(self._loaded(self._tensor(first), self._tensor(second))) for first, second in pairs]
            self._loaded.reset()  # it would keep a mean of everything that it has seen
        return np.array(made)

    def _tensor(self, data: bytes) -> Any:
        """Return a picture as values from 0 to 1, shape (1, 3, 256, 256)."""
        import torch

        pixels = np.asarray(decode(data).resize((_SIDE, _SIDE)), np.float32) / 255.0
        return torch.from_numpy(pixels).permute(2, 0, 1).unsqueeze(0).to(self._device)

    @cached_property
    def _weights_sha256(self) -> str:
        return file_sha256(self._weights)

    @cached_property
    def _weights(self) -> Path:
        """The file of the network's weights, where torch keeps what it fetches; nothing is fetched here."""
        import torch

        path = Path(torch.hub.get_dir()) / "checkpoints" / _LPIPS_FILES[self._net]
        if not path.is_file():
            raise AbsentModelError(
                f"The weights of LPIPS are not on this machine: {str(path)!r} is missing.",
                hint=f"Fetch https://download.pytorch.org/models/{path.name} into that folder.",
            )
        return path

    @cached_property
    def _loaded(self) -> Any:
        lpips = need("torchmetrics.image.lpip", "LPIPS", "metrics")
        self._weights.stat()  # raises where they are missing: torchmetrics would fetch them
        return lpips.LearnedPerceptualImagePatchSimilarity(net_type=self._net, normalize=True).to(self._device)


class StructuralSimilarity:
    """SSIM of two pictures by scikit-image: grey values from 0 to 1 at 256 by 256, a Gaussian window."""

    def spec(self) -> Mapping[str, Any]:
        """Size and package version."""
        version = str(need("skimage", "SSIM", "metrics").__version__)
        return {"name": "ssim", "side": _SIDE, "skimage": version}

    def compare(self, pairs: Sequence[tuple[bytes, bytes]]) -> Vectors:
        """Return SSIM of each pair, shape (N,), with the paper's window and constants."""
        ssim = need("skimage.metrics", "SSIM", "metrics").structural_similarity
        ways = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": 1.0}
        return np.array([float(ssim(_grey(first), _grey(second), **ways)) for first, second in pairs])


def make_encoder(spec: str) -> ImageEncoder:
    """Return the encoder that `spec` names: `open-clip:...`, `vision:...`, `csd:...`, `inception`, or a plug-in.

    Raises:
        UnknownPluginError: there is none. UsageError, InputFileError, MissingExtraError: it cannot be made.
    """
    made = default_registry("encoders").create(spec)
    if not isinstance(made, ImageEncoder):
        raise UsageError(f"The encoder {spec!r} has no encode_images.", hint="See docs/metrics.md.")
    return made


def _grey(data: bytes) -> Vectors:
    return np.asarray(decode(data).convert("L").resize((_SIDE, _SIDE)), np.float64) / 255.0


def _rows(batch: Any) -> Vectors:
    return np.asarray(batch.float().cpu().numpy(), dtype=np.float64)


def _state_sha256(model: Any) -> str:
    import torch

    def data(value: Any) -> bytes:
        raw: bytes = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        return raw

    return digest({name: sha256_hex(data(value)) for name, value in model.state_dict().items()})
