"""IP-Adapter: pictures of characters beside the prompt, for any SDXL checkpoint (arXiv 2308.06721).

The image encoder reads the pictures on the CPU, once, and is let go: on the device there is the adapter's share of the
denoiser and nothing more. A frame without a picture is drawn as if by the adapter's own unconditional half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.errors import InputFileError, UsageError
from katha.pictures import decode
from katha.renderers.diffusion.checkpoint import files_sha256, read_header
from katha.renderers.diffusion.memory import Encoded
from katha.renderers.references import CharacterPictures

if TYPE_CHECKING:
    from torch import Tensor

_FETCH = "hf download h94/IP-Adapter sdxl_models/ip-adapter-plus_sdxl_vit-h.safetensors"
_ENCODERS = ("image_encoder", "../models/image_encoder")
"""Where the image encoder lies beside an adapter's file: of its own, or as the publisher's repository has it."""
POSITIVE, NEGATIVE = "ip_adapter", "negative_ip_adapter"
"""What the pictures of a frame, and none, are called among its embeddings; each (1, N, ...)."""


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
        return files_sha256({"adapter": self.file, "encoder": self.encoder / "model.safetensors"})

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

    def read(self, pipe: Any, names: Sequence[str]) -> Encoded:
        """Return the embeddings of the pictures of these characters, and of as many without anything to be seen."""
        import torch
        from diffusers.models.embeddings import ImageProjection
        from transformers import CLIPImageProcessor, CLIPVisionModelWithProjection

        encoder = CLIPVisionModelWithProjection.from_pretrained(self.encoder, local_files_only=True).float()
        side = encoder.config.image_size
        processor = CLIPImageProcessor(size=side, crop_size=side)
        pooled = isinstance(pipe.unet.encoder_hid_proj.image_projection_layers[0], ImageProjection)
        shown = [decode(self.pictures[name]) for name in names]

        def embed(pixels: Tensor) -> Tensor:
            out = encoder(pixels, output_hidden_states=not pooled)
            found: Tensor = out.image_embeds if pooled else out.hidden_states[-2]
            return found[None]

        with torch.no_grad():
            blank = torch.zeros(max(1, len(shown)), 3, side, side)
            # As diffusers does: nothing is zeros to an adapter that reads one vector, grey to one that reads tokens.
            nothing = torch.zeros_like(embed(blank)) if pooled else embed(blank)
            seen = embed(processor(shown, return_tensors="pt").pixel_values) if shown else nothing
        return {POSITIVE: seen, NEGATIVE: nothing}


def find_ip_adapter(
    file: Path | None, encoder: Path | None, scale: float, characters: Path | None, reference: Sequence[str]
) -> IpAdapter | None:
    """Return the adapter with its pictures; None where there are no pictures.

    Raises:
        UsageError: pictures without an adapter, an adapter without pictures, or a file that is no adapter.
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
        raise InputFileError(message, hint="Give ip_encoder=FOLDER: hf download h94/IP-Adapter --include models/*.")
    return IpAdapter(path, folder, scale, pictures)
