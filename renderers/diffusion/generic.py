"""`diffusers:FOLDER`, `:OWNER/NAME`: any pipeline of diffusers that makes pictures, or videos, of the common arguments.

What it draws with is read from the pipeline itself: steps, guidance and the limit of a prompt are the defaults of its
call, unless an option or `configs/diffusion.yaml` says otherwise. Families with a renderer of their own are drawn here
as well, without its shortcuts: the pipeline reads the prompt of every frame. Of a video one picture is the frame
(`katha.renderers.diffusion.clips`).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import yaml

from katha.errors import UsageError
from katha.protocols import BoardContext, Capabilities, FrameRequest
from katha.renderers.diffusion.clips import between_arguments, clip_of
from katha.renderers.diffusion.memory import Encoded, Loaded, load_tokenizer, unwarned
from katha.renderers.diffusion.options import Calling, DiffusionOptions, Variant, diffusion_data
from katha.renderers.diffusion.renderer import DiffusionRenderer, DrawingJob, frame_prompt, token_count

if TYPE_CHECKING:
    from torch import Tensor

_COMMON = ("prompt", "width", "height", "num_inference_steps", "generator")
_SCALES = ("true_cfg_scale", "guidance_scale")
"""What pipelines call the scale of guidance; of two, the first is that away from the negative prompt."""
# CLIP reads 77 tokens, of which two are its marks.
_CLIP_TOKENS = 75


@dataclass(frozen=True, kw_only=True)
class GenericOptions(DiffusionOptions):
    """The options of `diffusers`."""

    base: str | None = field(default=None, init=False)
    call: tuple[str, ...] = ()
    """Further arguments of the pipeline, each NAME=VALUE in YAML (`call=true_cfg_scale=4.0`)."""
    multiple: int = 16
    """What sides are multiples of."""
    side: int = 1024
    """The side in pixels of the square that the weights were trained for."""
    frames: int | None = None
    """Of a video model: how many pictures a clip has; what its publisher draws unless told."""
    keyframe: float | None = None
    """Of a video model: which picture of a scene's clip is the frame, from 0 (the first) to 1 (the last)."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The further arguments by name.

        Raises:
            UsageError: one is not a NAME=VALUE.
        """
        found: dict[str, Any] = {}
        for text in self.call:
            name, sign, value = text.partition("=")
            try:
                found[name.strip()] = yaml.safe_load(value)
            except yaml.YAMLError as error:
                raise UsageError(f"{text!r} is not a value.", hint="Write call=NAME=VALUE.") from error
            if not sign or not name.strip().isidentifier():
                raise UsageError(f"{text!r} is not an argument of a pipeline.", hint="Write call=NAME=VALUE.")
        return found


class GenericRenderer(DiffusionRenderer):
    """Any diffusers pipeline that makes a picture, or a video, from a prompt, a size, steps and a generator."""

    family_name = "diffusers"
    renderer_name = "diffusers"
    options_class = GenericOptions
    options: GenericOptions
    capabilities = Capabilities(default_size=(1024, 1024), size_multiple=16)

    def __init__(self, argument: str | None = None, options: GenericOptions | None = None) -> None:
        """Find the checkpoint; nothing is loaded.

        Raises:
            UsageError: none is named, its class is not a pipeline of the installed diffusers, it does not take the
            common arguments, or an argument that was given, or a clip cannot be as it is asked for.
        """
        if argument is None:
            example = diffusion_data().families[self.family_name].model
            raise UsageError("The renderer 'diffusers' needs a checkpoint.", hint=f"For example diffusers:{example}.")
        super().__init__(argument, options)
        own = self.options
        self.family = replace(self.family, size_multiple=own.multiple, native=own.side)
        self.clip = clip_of(self.parameters, self.checkpoint, own.frames, own.keyframe)
        width, height = (int(self._default(name, own.side)) for name in ("width", "height"))
        self.capabilities = replace(
            self.capabilities,
            size_multiple=own.multiple,
            default_size=(width, height) if self.clip else (own.side, own.side),
            insertion="reference" if self.calling.between else "alone",
            prompt_tokens=self.prompt_tokens,
        )
        lacking = [name for name in _COMMON if name not in self.parameters]
        if lacking:
            raise UsageError(f"{self.checkpoint.pipeline} takes no {', '.join(lacking)}.", hint="Use another renderer.")
        unknown = sorted(own.arguments.keys() - self.parameters.keys())
        if unknown:
            raise UsageError(
                f"{self.checkpoint.pipeline} takes no {unknown[0]!r}.",
                hint=f"It takes {', '.join(sorted(self.parameters.keys() - {*_COMMON, 'self', 'kwargs'}))}.",
            )

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The arguments of the pipeline's call.

        Raises:
            UsageError: the installed diffusers has no such class.
        """
        import diffusers

        kind = getattr(diffusers, self.checkpoint.pipeline, None)
        if kind is None:
            told = f"diffusers {diffusers.__version__} has no {self.checkpoint.pipeline}"
            raise UsageError(f"{told}, which {self.checkpoint.name!r} is.", hint="Install a newer diffusers.")
        return inspect.signature(kind.__call__).parameters

    @cached_property
    def scale(self) -> str:
        """The argument that guidance is given as; "" where there is none."""
        return next((name for name in _SCALES if name in self.parameters), "")

    def variant(self) -> Variant:
        """Return the pipeline's own defaults where the data has no row for it."""
        known = self.family.variant(self.facts)
        if known.when:
            return known
        steps, scale = self._default("num_inference_steps", known.steps), self._default(self.scale, known.guidance)
        return replace(known, steps=int(steps), guidance=float(scale), prompt_tokens=self._limit)

    def calling_of(self) -> Calling:
        """Return how the class is called, as far as the data says."""
        return diffusion_data().calls.get(self.checkpoint.pipeline, Calling("never"))

    def _default(self, name: str, fallback: float) -> float:
        found = self.parameters[name].default if name in self.parameters else None
        return found if isinstance(found, (int, float)) else fallback

    @cached_property
    def _limit(self) -> int:
        """Return how many tokens of a prompt are read: the default of the call, or what CLIP reads."""
        return int(self._default("max_sequence_length", _CLIP_TOKENS))

    @cached_property
    def _tokenizer(self) -> Any:
        """The tokenizer that reads the whole prompt: the last one that is not CLIP's, else the last."""
        import transformers

        known = sorted(self.checkpoint.components.items())
        parts = {name: kind for name, kind in known if name.startswith("tokenizer")}
        if not parts:
            return None
        long = [name for name, kind in parts.items() if not kind.startswith("CLIP")]
        part = (long or list(parts))[-1]
        return load_tokenizer(getattr(transformers, parts[part]), self.checkpoint, part)

    def spec(self) -> Mapping[str, Any]:
        """Return weights, adapters, settings and versions: everything that can change the pixels."""
        own = {name: value for name, value in super().spec().items() if name not in ("frames", "keyframe")}
        clip = {"clip": asdict(self.clip)} if self.clip else {}
        return {**own, **clip, "call": self.options.arguments}

    @property
    def pictures(self) -> int:
        """Return how many latents a frame is drawn with beside its own: those of a clip."""
        return self.clip.latents - 1 if self.clip else 0

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Draw as every diffusion renderer does, of a video model its clips' keyframes.

        Raises:
            UsageError: the pipeline draws from pictures, and scenes have none.
        """
        asked = [
            name
            for name, one in self.parameters.items()
            if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
        ]
        wanting = sorted(set(asked) - {"self", *_COMMON})
        if wanting and requests:
            hint = "Give it as --bridge-renderer, which has the frames on both sides."
            raise UsageError(
                f"{self.checkpoint.pipeline} draws from {' and '.join(wanting)}, which a scene does not have.",
                hint=hint if self.calling.between else "Give a checkpoint that draws from words alone.",
            )
        return super().render_board(requests)

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """Return the PNG of a frame that stands alone or, where the pipeline takes a first and a last picture, of the
        middle of the clip between the frames on both sides; at a board's end the one frame is both."""
        around = context.images[max(0, context.position - 1) : context.position + 1]
        if self.clip is None or not self.calling.between or not around:
            return super().insert_frame(request, context)
        self.tell([request])
        self.check(request)
        shown = between_arguments(self.calling.between, around, (request.width, request.height))
        with self.pipeline([request]) as loaded, self.device_failures(), unwarned("diffusers"):
            videos = self._videos(loaded.pipe, [DrawingJob(request, {})], **shown)
        return self.png(self.clip.taken(videos, 0.5)[0].cpu(), request)

    def count_tokens(self, text: str) -> int:
        """Return the tokens of the encoder that reads the whole prompt; 0 where the checkpoint has no tokenizer."""
        return token_count(self._tokenizer, text) if self._tokenizer is not None else 0

    def encode(self, loaded: Loaded, request: FrameRequest) -> Encoded:
        """Return nothing: the pipeline reads its prompts itself."""
        return {}

    def stacked(self, jobs: Sequence[DrawingJob], device: Any) -> dict[str, object]:
        """Return the prompts, and what shall not be seen where the class takes it and an option asks for it."""
        negative = [self.negative_of(job.request) or "" for job in jobs]
        away = {"negative_prompt": negative} if "negative_prompt" in self.parameters and any(negative) else {}
        return {"prompt": [frame_prompt(job.request) for job in jobs], **away}

    def guiding(self, jobs: Sequence[DrawingJob]) -> dict[str, float]:
        """Return the pipeline's argument for guidance, unless it is among those that were given."""
        return {self.scale: self.guidance} if self.scale else {}

    def call(self, pipe: Any, jobs: Sequence[DrawingJob], **more: object) -> Tensor:
        """Return what the pipeline makes of the jobs, of a video its keyframe: images of shape (B, 3, H, W)."""
        made = self._videos(pipe, jobs, **more)
        return self.clip.taken(made) if self.clip else made

    def taken(self, called: Any) -> Tensor:
        """Return what the pipeline gave, images (B, 3, H, W) or videos (B, F, 3, H, W)."""
        if self.clip is None:
            return super().taken(called)
        videos: Tensor = called.frames
        return videos

    def _videos(self, pipe: Any, jobs: Sequence[DrawingJob], **more: object) -> Tensor:
        clip = {"num_frames": self.clip.frames} if self.clip else {}
        return super().call(pipe, jobs, **{**self.options.arguments, **clip, **more})
