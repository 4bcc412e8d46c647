"""`sdxl`: any SDXL checkpoint, with adapters, negative prompts and prompts of any length."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from katha.errors import InputFileError, UsageError
from katha.jsonio import digest, sha256_hex
from katha.pictures import decode
from katha.protocols import Capabilities, FrameRequest
from katha.renderers.diffusion.checkpoint import files_sha256, read_header
from katha.renderers.diffusion.memory import Encoded, Loaded, load_tokenizer, sibling, unwarned
from katha.renderers.diffusion.options import DiffusionOptions, between, one_of
from katha.renderers.diffusion.renderer import DiffusionRenderer, DrawingJob, frame_prompt, token_count
from katha.renderers.references import CharacterPictures

if TYPE_CHECKING:
    from torch import Tensor


def chunk_tokens(pieces: Sequence[str], size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of at most `size` pieces that make up the whole, broken at word ends (`</w>`) where there is one."""
    start = 0
    while len(pieces) - start > size:
        ends = (at for at in range(start + size, start, -1) if pieces[at - 1].endswith("</w>"))
        stop = next(ends, start + size)
        yield start, stop
        start = stop
    yield start, len(pieces)


def encode_sdxl(pipe: Any, prompt: str) -> Encoded:
    """Encode with SDXL's two encoders: `embeds` of shape (1, 77 k, 2048) and `pooled` of shape (1, 1280).

    A prompt of at most 75 tokens takes diffusers' own way (k = 1). A longer one is read in k pieces of whole words,
    each between the start and end tokens, side by side along the sequence; the pooled vector is the first piece's.
    """
    import torch

    with torch.no_grad():
        parts = [_chunks(tokenizer, prompt) for tokenizer in (pipe.tokenizer, pipe.tokenizer_2)]
        count = max(map(len, parts))
        if count == 1:
            embeds, _, pooled, _ = pipe.encode_prompt(prompt, do_classifier_free_guidance=False)
            return {"embeds": embeds, "pooled": pooled}
        read = [
            _read(encoder, [*ids, *[_framed(tokenizer, [])] * (count - len(ids))])
            for tokenizer, encoder, ids in zip(
                (pipe.tokenizer, pipe.tokenizer_2), (pipe.text_encoder, pipe.text_encoder_2), parts, strict=True
            )
        ]
        embeds = torch.cat([states for states, _ in read], dim=-1)
        return {"embeds": embeds.reshape(1, -1, embeds.shape[-1]), "pooled": read[1][1][:1]}


def pad_sdxl(pipe: Any, embeds: Tensor, length: int) -> Tensor:
    """Return `embeds` of shape (1, S, D) continued with the embedding of an empty prompt to (1, `length`, D)."""
    import torch

    missing = (length - embeds.shape[1]) // pipe.tokenizer.model_max_length
    if missing <= 0:
        return embeds
    empty = encode_sdxl(pipe, "")["embeds"].to(embeds)
    return torch.cat([embeds, *[empty] * missing], dim=1)


def _chunks(tokenizer: Any, prompt: str) -> list[list[int]]:
    """Return the prompt's ids in pieces, each with start, end and padding, of the tokenizer's full length."""
    ids = tokenizer(prompt, add_special_tokens=False, verbose=False)["input_ids"]  # any length is right here
    pieces = tokenizer.convert_ids_to_tokens(ids)
    room = tokenizer.model_max_length - 2
    return [_framed(tokenizer, ids[start:stop]) for start, stop in chunk_tokens(pieces, room)]


def _framed(tokenizer: Any, ids: Sequence[int]) -> list[int]:
    padding = [tokenizer.pad_token_id] * (tokenizer.model_max_length - 2 - len(ids))
    return [tokenizer.bos_token_id, *ids, tokenizer.eos_token_id, *padding]


def _read(encoder: Any, rows: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Return the last layer but one's hidden states, (k, 77, D), and the first output (pooled, for the second)."""
    import torch
    from diffusers.utils.torch_utils import get_module_execution_device

    out = encoder(torch.tensor(rows, device=get_module_execution_device(encoder)), output_hidden_states=True)
    return out.hidden_states[-2], out[0]


# IP-Adapter (arXiv 2308.06721): pictures of characters beside the prompt. The image encoder reads them on the CPU,
# once, and is let go: on the device there is the adapter's share of the denoiser and nothing more. A frame without a
# picture is drawn as by the adapter's own unconditional half.

_FETCH = "hf download h94/IP-Adapter sdxl_models/ip-adapter-plus_sdxl_vit-h.safetensors"
_ENCODERS = ("image_encoder", "../models/image_encoder")
"""Where the image encoder lies beside an adapter's file: of its own, or as the publisher's repository has it."""
_POSITIVE, _NEGATIVE = "ip_adapter", "negative_ip_adapter"
"""What the pictures of a frame, and none, are called among its embeddings; each (1, N, ...)."""
_MASKS = "ip_masks"
"""What the name of their masks, (1, N, H, W), begins with; it ends with whose they are: a batch shares them."""


def strips(shown: Sequence[bool], width: int, height: int) -> Tensor:
    """Return masks (1, N, height, width) of the N members of a cast of whom there is a picture: the frame is divided
    from left to right into as many strips as it has members, in their order."""
    import torch

    masks = torch.zeros(len(shown), height, width)
    for number, mask in enumerate(masks):
        mask[:, round(number * width / len(shown)) : round((number + 1) * width / len(shown))] = 1
    return masks[torch.tensor(shown)][None]


@dataclass(frozen=True)
class IpAdapter:
    """An adapter's file, the folder of its image encoder, its weight, and the pictures it is used with."""

    file: Path
    encoder: Path
    scale: float
    pictures: CharacterPictures

    @cached_property
    def sha256(self) -> str:
        """The hash of the weights of adapter and encoder."""
        return files_sha256({"adapter": self.file, "encoder": self.eye})

    @property
    def eye(self) -> Path:
        """The image encoder's weights."""
        return self.encoder / "model.safetensors"

    def spec(self) -> Mapping[str, Any]:
        """Return what of it can change the pixels."""
        return {"sha256": self.sha256, "scale": self.scale, "pictures": self.pictures.spec()}

    def attach(self, pipe: Any) -> None:
        """Put the adapter on the pipeline's denoiser.

        Raises:
            UsageError: it was made for another model.
        """
        place = {"subfolder": "", "weight_name": self.file.name, "local_files_only": True}
        try:
            pipe.load_ip_adapter(str(self.file.parent), **place, image_encoder_folder=None)
        except Exception as error:  # the loader raises many kinds, all meaning that it does not fit
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            message = f"The IP-Adapter {self.file.name!r} does not fit {type(pipe).__name__}: {reason}."
            raise UsageError(message, hint=f"Use one for this model: {_FETCH}.") from error
        pipe.set_ip_adapter_scale(self.scale)

    def read(self, pipe: Any, pictures: Sequence[bytes]) -> Encoded:
        """Return the embeddings of these pictures of characters, and of as many without anything to be seen."""
        import torch
        from diffusers.models.embeddings import ImageProjection
        from transformers import CLIPImageProcessor, CLIPVisionModelWithProjection

        encoder = CLIPVisionModelWithProjection.from_pretrained(self.encoder, local_files_only=True).float()
        side = encoder.config.image_size
        processor = CLIPImageProcessor(size=side, crop_size=side)
        pooled = isinstance(pipe.unet.encoder_hid_proj.image_projection_layers[0], ImageProjection)
        shown = [decode(data) for data in pictures]

        def embed(pixels: Tensor) -> Tensor:
            out = encoder(pixels, output_hidden_states=not pooled)
            found: Tensor = out.image_embeds if pooled else out.hidden_states[-2]
            return found[None]

        with torch.no_grad():
            blank = torch.zeros(max(1, len(shown)), 3, side, side)
            # As diffusers does: nothing is zeros to an adapter that reads one vector, grey to one that reads tokens.
            nothing = torch.zeros_like(embed(blank)) if pooled else embed(blank)
            seen = embed(processor(shown, return_tensors="pt").pixel_values) if shown else nothing
        return {_POSITIVE: seen, _NEGATIVE: nothing}


def find_ip_adapter(
    file: Path | None, encoder: Path | None, scale: float, characters: Path | None, reference: Sequence[str]
) -> IpAdapter | None:
    """Return the adapter with its pictures; None where there are no pictures.

    Raises:
        UsageError: pictures without an adapter, an adapter without pictures, or a file that is not an adapter.
        InputFileError: a file or a picture cannot be read.
    """
    pictures = CharacterPictures(characters, reference)
    if not pictures:
        if file is not None:
            hint = "Give --characters FOLDER, or reference=NAME=FILE."
            raise UsageError("ip_adapter changes nothing without pictures of characters.", hint=hint)
        return None
    if file is None:
        hint = f"Run `{_FETCH}` and give --renderer-option ip_adapter=FILE."
        raise UsageError("SDXL draws from pictures of characters by an IP-Adapter, and none is named.", hint=hint)
    path = file.expanduser()
    if not path.is_file() or path.suffix != ".safetensors":
        raise InputFileError(f"There is no IP-Adapter {str(file)!r}.", hint=f"Give a .safetensors file: {_FETCH}.")
    if not any(name.startswith("image_proj.") for name in read_header(path)):
        hint = "Its tensors would begin with 'image_proj.' and 'ip_adapter.'."
        raise UsageError(f"{str(file)!r} holds no IP-Adapter.", hint=hint)
    places = [encoder.expanduser()] if encoder is not None else [path.parent / place for place in _ENCODERS]
    folder = next((place for place in places if (place / "model.safetensors").is_file()), None)
    if folder is None:
        message = f"The IP-Adapter {path.name!r} needs its image encoder, which is not in {str(places[0])!r}."
        raise InputFileError(
            message, hint="Give ip_encoder=FOLDER: hf download h94/IP-Adapter --include 'models/image_encoder/*'."
        )
    return IpAdapter(path, folder, scale, pictures)


@dataclass(frozen=True, kw_only=True)
class SdxlOptions(DiffusionOptions):
    """The options of `sdxl`."""

    long_prompts: Literal["chunk", "refuse"] = "chunk"
    """`chunk` reads a prompt of more than 75 tokens in pieces, `refuse` stops."""


@dataclass(frozen=True, kw_only=True)
class PicturedSdxlOptions(SdxlOptions):
    """The options of `sdxl` that frames drawn together have no use for: pictures of characters, by an IP-Adapter, and
    how closely layouts are followed."""

    characters: Path | None = None
    """A folder with a picture of every character, NAME.png."""
    reference: tuple[str, ...] = ()
    """NAME=FILE, a picture of the plan's character NAME."""
    ip_adapter: Path | None = None
    """The adapter's .safetensors file."""
    ip_encoder: Path | None = None
    """The folder of its image encoder, where it is not beside the file."""
    ip_scale: float = 0.6
    """How much the pictures count beside the words, 0 to 1."""
    ip_masks: Literal["strips", "none"] = "strips"
    """`strips` has each picture of several characters count in its own part of the frame, from left to right in the
    order in which the plan names them; `none` has all count everywhere, and likenesses mix."""
    strength: float | None = None
    """With --guide, the share of the steps that are drawn over the layout, between 0 and 1: less keeps more of it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        between(strength=self.strength)
        one_of("way of masking", self.ip_masks, ("strips", "none"))


_PICTURED = ("characters", "reference", "ip_adapter", "ip_encoder", "ip_scale", "ip_masks")


class SdxlRenderer(DiffusionRenderer):
    """Stable Diffusion XL on this machine: `sdxl:FOLDER`, `sdxl:FILE.safetensors` or `sdxl:OWNER/NAME`."""

    family_name = "sdxl"
    renderer_name = "sdxl"
    options_class: ClassVar[type[SdxlOptions]] = PicturedSdxlOptions
    options: SdxlOptions
    capabilities = Capabilities(default_size=(1024, 1024), size_multiple=8, guide=True)
    adapter: IpAdapter | None = None

    def __init__(self, argument: str | None = None, options: SdxlOptions | None = None) -> None:
        """Find the checkpoint, the IP-Adapter and the characters' pictures; nothing is loaded."""
        super().__init__(argument, options)
        if self.options.long_prompts == "refuse":
            self.capabilities = replace(self.capabilities, prompt_tokens=self.prompt_tokens)
        if isinstance(self.options, PicturedSdxlOptions):
            own = self.options
            self.adapter = find_ip_adapter(own.ip_adapter, own.ip_encoder, own.ip_scale, own.characters, own.reference)
        if self.adapter is not None:
            self.capabilities = replace(self.capabilities, identity="bank", pictures=True)

    def spec(self) -> Mapping[str, Any]:
        """Return weights, adapters, settings, pictures and versions: everything that can change the pixels."""
        spec = {name: value for name, value in super().spec().items() if name not in _PICTURED}
        if self.adapter is None:
            return spec
        masks = {"masks": "strips"} if self.masked else {}
        return {**spec, "ip_adapter": {**self.adapter.spec(), **masks}}

    @property
    def masked(self) -> bool:
        """Return whether each character's picture counts in a part of the frame."""
        return isinstance(self.options, PicturedSdxlOptions) and self.options.ip_masks == "strips"

    @property
    def strength(self) -> float | None:
        """The share of the steps that are drawn over a layout."""
        return self.options.strength if isinstance(self.options, PicturedSdxlOptions) else None

    @property
    def beside(self) -> tuple[Sequence[Path], Sequence[Path]]:
        """Files of adapters, and of the image encoder."""
        added, read = super().beside
        return (added, read) if self.adapter is None else ([*added, self.adapter.file], [*read, self.adapter.eye])

    def prepare(self, pipe: Any) -> None:
        """Put the IP-Adapter on the pipeline, if there is one."""
        if self.adapter is not None:
            self.adapter.attach(pipe)

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Draw as every diffusion renderer does; pictures that are of nobody in the board are told."""
        if self.adapter is not None:
            unused = self.adapter.pictures.unused(item for request in requests for item in request.characters)
            self._remarks += [unused] if unused else []
        return super().render_board(requests)

    def inpaint_frame(self, request: FrameRequest, picture: bytes, mask: bytes) -> bytes:
        """Return the PNG of `picture` with what the request says where `mask` is white, by the same weights: noise
        alone is denoised inside, and the picture, noised as far, is put around it at every step.

        Raises:
            UsageError, BlankFrameError, RenderError: as for `render_board`.
        """
        from PIL import Image

        self.check(request)
        with self.pipeline([request]) as loaded, self.device_failures(), unwarned("diffusers"):
            job, pipe = DrawingJob(request, self.encode(loaded, request)), loaded.pipe
            other = sibling(pipe, "StableDiffusionXLInpaintPipeline")
            hole = Image.open(io.BytesIO(mask)).convert("L")
            image = self.draw(other, [job], image=decode(picture), mask_image=hole, strength=1.0)[0].cpu()
            pipe.maybe_free_model_hooks()
        return self.png(image, request)

    def draw(self, pipe: Any, jobs: Sequence[DrawingJob], **more: object) -> Tensor:
        """Draw one batch, its characters' pictures beside the prompts: images of shape (B, 3, H, W), values 0 to 1.
        more: arguments of the pipeline."""
        import torch

        if self.adapter is None:
            return self.call(pipe, jobs, **more)
        halves = (_NEGATIVE, _POSITIVE) if self.guidance > 1 else (_POSITIVE,)
        shown = torch.cat([job.encoded[name] for name in halves for job in jobs])
        told = [name for name in jobs[0].encoded if name.startswith(_MASKS)]
        beside = {_NEGATIVE, _POSITIVE, *told}
        plain = [
            DrawingJob(job.request, {name: value for name, value in job.encoded.items() if name not in beside})
            for job in jobs
        ]
        shown = shown.to(self.device, pipe.unet.dtype)
        masks = {"ip_adapter_masks": [jobs[0].encoded[name].to(self.device) for name in told]}
        where = {"cross_attention_kwargs": masks} if told else {}
        return self.call(pipe, plain, ip_adapter_image_embeds=[shown], **where, **more)

    def _key(self) -> str:
        return (
            super()._key()
            if self.adapter is None
            else digest([super()._key(), self.adapter.sha256, self.adapter.scale])
        )

    def count_tokens(self, text: str) -> int:
        """Return the tokens of the first encoder."""
        return token_count(self._tokenizer, text)

    def check_prompt(self, request: FrameRequest) -> None:
        """Refuse a prompt of more tokens than are read at once, where it may not be read in pieces."""
        if self.options.long_prompts == "refuse":
            super().check_prompt(request)

    @property
    def halves(self) -> int:
        """Rows of the UNet's batch for a frame: two with guidance."""
        return 2 if self.guidance > 1 else 1

    def encode(self, loaded: Loaded, request: FrameRequest) -> Encoded:
        """Return the embeddings of the prompt and of what shall not be seen, of one length."""
        import torch

        pipe = loaded.pipe

        def read(text: str) -> Encoded:
            return loaded.encoded(text, lambda: encode_sdxl(pipe, text))

        wanted, negative = read(frame_prompt(request)), self.negative_of(request) or ""
        if not negative and pipe.config.force_zeros_for_empty_prompt:
            unwanted: Encoded = {name: torch.zeros_like(value) for name, value in wanted.items()}
        else:
            unwanted = read(negative)
        length = max(wanted["embeds"].shape[1], unwanted["embeds"].shape[1])
        pictures: Encoded = {}
        if self.adapter is not None:
            adapter = self.adapter
            sheets = dict(request.pictures)
            given = [sheets.get(item.name) or adapter.pictures.get(item.name) for item in request.characters]
            shown = [data for data in given if data is not None]
            key = digest(["pictures", *map(sha256_hex, shown)])
            pictures = loaded.encoded(key, lambda: adapter.read(pipe, shown))
            if self.masked and len(given) > 1 and shown:
                there = [data is not None for data in given]
                name = f"{_MASKS} {''.join(str(int(one)) for one in there)}"
                pictures = {**pictures, name: strips(there, request.width, request.height)}
        return {
            **pictures,
            "prompt_embeds": pad_sdxl(pipe, wanted["embeds"], length),
            "negative_prompt_embeds": pad_sdxl(pipe, unwanted["embeds"], length),
            "pooled_prompt_embeds": wanted["pooled"],
            "negative_pooled_prompt_embeds": unwanted["pooled"],
        }

    @cached_property
    def _tokenizer(self) -> Any:
        from transformers import CLIPTokenizer

        return load_tokenizer(CLIPTokenizer, self.checkpoint, "tokenizer")
