"""`sdxl`: any SDXL checkpoint, with adapters, negative prompts and prompts of any length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from katha.jsonio import digest
from katha.protocols import Capabilities, FrameRequest
from katha.renderers.diffusion.ip_adapter import NEGATIVE, POSITIVE, IpAdapter, find_ip_adapter
from katha.renderers.diffusion.memory import Encoded, Loaded
from katha.renderers.diffusion.options import DiffusionOptions
from katha.renderers.diffusion.renderer import DiffusionRenderer, Job, frame_prompt, token_count

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
    ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
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


@dataclass(frozen=True, kw_only=True)
class SdxlOptions(DiffusionOptions):
    """The options of `sdxl`."""

    long_prompts: Literal["chunk", "refuse"] = "chunk"
    """`chunk` reads a prompt of more than 75 tokens in pieces, `refuse` stops."""


@dataclass(frozen=True, kw_only=True)
class PicturedSdxlOptions(SdxlOptions):
    """The options of `sdxl` that frames drawn together have no use for: pictures of characters, by an IP-Adapter."""

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


_PICTURED = ("characters", "reference", "ip_adapter", "ip_encoder", "ip_scale")


class SdxlRenderer(DiffusionRenderer):
    """Stable Diffusion XL on this machine: `sdxl:FOLDER`, `sdxl:FILE.safetensors` or `sdxl:OWNER/NAME`."""

    family_name = "sdxl"
    renderer_name = "sdxl"
    options_class: ClassVar[type[SdxlOptions]] = PicturedSdxlOptions
    options: SdxlOptions
    capabilities = Capabilities(default_size=(1024, 1024), size_multiple=8)
    adapter: IpAdapter | None = None

    def __init__(self, argument: str | None = None, options: SdxlOptions | None = None) -> None:
        """Find the checkpoint, the IP-Adapter and the characters' pictures; nothing is loaded."""
        super().__init__(argument, options)
        if isinstance(self.options, PicturedSdxlOptions):
            own = self.options
            self.adapter = find_ip_adapter(own.ip_adapter, own.ip_encoder, own.ip_scale, own.characters, own.reference)
        if self.adapter is not None:
            self.capabilities = replace(self.capabilities, identity="bank")

    def spec(self) -> Mapping[str, Any]:
        """Return weights, adapters, settings, pictures and versions: everything that can change the pixels."""
        spec = {name: value for name, value in super().spec().items() if name not in _PICTURED}
        return spec if self.adapter is None else {**spec, "ip_adapter": dict(self.adapter.spec())}

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

    def draw(self, pipe: Any, jobs: Sequence[Job]) -> Tensor:
        """Draw one batch, its characters' pictures beside the prompts: images of shape (B, 3, H, W), values 0 to 1."""
        import torch

        if self.adapter is None:
            return super().draw(pipe, jobs)
        halves = (NEGATIVE, POSITIVE) if self.guidance > 1 else (POSITIVE,)
        shown = torch.cat([job.encoded[name] for name in halves for job in jobs])
        plain = [
            Job(job.request, {name: value for name, value in job.encoded.items() if name not in (NEGATIVE, POSITIVE)})
            for job in jobs
        ]
        return self.call(pipe, plain, ip_adapter_image_embeds=[shown.to(pipe._execution_device, pipe.unet.dtype)])

    def _key(self) -> str:
        return (
            super()._key()
            if self.adapter is None
            else digest([super()._key(), self.adapter.sha256, self.adapter.scale])
        )

    def count_tokens(self, text: str) -> int:
        """Return the tokens of the first encoder; 0 where a prompt may have any number of them."""
        return token_count(self._tokenizer, text) if self.options.long_prompts == "refuse" else 0

    def encode(self, loaded: Loaded, request: FrameRequest) -> Encoded:
        """Return the embeddings of the prompt and of what shall not be seen, of one length."""
        import torch

        pipe = loaded.pipe

        def read(text: str) -> Encoded:
            return loaded.encoded(text, lambda: encode_sdxl(pipe, text))

        wanted, negative = read(frame_prompt(request.prompt, request.style)), self.negative_of(request) or ""
        if not negative and pipe.config.force_zeros_for_empty_prompt:
            unwanted: Encoded = {name: torch.zeros_like(value) for name, value in wanted.items()}
        else:
            unwanted = read(negative)
        length = max(wanted["embeds"].shape[1], unwanted["embeds"].shape[1])
        pictures: Encoded = {}
        if self.adapter is not None:
            adapter = self.adapter
            names = [item.name for item in request.characters if item.name in adapter.pictures]
            key = digest(["pictures", *(adapter.pictures.spec()[adapter.pictures.key(name)] for name in names)])
            pictures = loaded.encoded(key, lambda: adapter.read(pipe, names))
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

        return CLIPTokenizer.from_pretrained(self.checkpoint.folder / "tokenizer", local_files_only=True)
