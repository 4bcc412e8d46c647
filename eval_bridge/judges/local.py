"""`local:MODEL_OR_PATH`: an open vision-language model on this machine, through transformers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, get_args

from katha.configs import load_config
from katha.errors import JudgeError, MissingExtraError, UsageError
from katha.eval_bridge.packets.instructions import parse_reply, prompt_sha256
from katha.eval_bridge.packets.packets import evidence_sha256
from katha.installing import install_line
from katha.jsonio import digest, sha256_hex
from katha.models.checkpoints import (
    ModelSource,
    best_device,
    check_device,
    device_models,
    find_folder,
    folder_revision,
    free_bytes,
    let_go,
    read_config,
    sound_configuration,
    whole_bytes,
)
from katha.models.local import require_quantiser
from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply, PlainPrompt

if TYPE_CHECKING:  # without torch the judge is listed, and says what it needs
    from katha.eval_bridge.judges.local_model import Asker, Generated

# The gate of prefix reuse: a sample of questions is asked again the naive way, and answers that flip are counted.


@dataclass
class ReuseGate:
    """rate: the share of questions checked, 0 to 1. Above `limit` flips per check, from `least` checks on, it stops."""

    rate: float = 0.0
    limit: float = 0.05
    least: int = 20
    checked: int = 0
    flipped: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= self.rate <= 1.0:
            raise UsageError(f"verify_reuse is a share between 0 and 1, not {self.rate!r}.")

    @property
    def flip_rate(self) -> float | None:
        """Flips per check; None before the first."""
        return self.flipped / self.checked if self.checked else None

    def wants(self, packet: str, prompt: str) -> bool:
        """Return whether the question with these hashes is in the sample; the same ones in every run."""
        return int(digest([packet, prompt])[:8], 16) < self.rate * 0x1_0000_0000

    def record(self, reused: str, naive: str) -> str:
        """Count one comparison of raw replies: `same` or `flipped`.

        Raises:
            JudgeError: too many flipped.
        """
        self.checked += 1
        self.flipped += reused != naive
        if self.checked >= self.least and self.flipped > self.limit * self.checked:
            raise JudgeError(
                f"Prefix reuse changed {self.flipped} of {self.checked} replies; at most {self.limit:.0%} may change.",
                hint="Use reuse='off', or a wider dtype.",
            )
        return "same" if reused == naive else "flipped"


# What the judge `local` needs of a model: packages, a vision-language architecture, whether it shares a cache.


_FULL = frozenset(("full_attention",))


def require_extra() -> None:
    """Check that everything a local model needs is installed; nothing is imported.

    Raises:
        MissingExtraError: with the names of the packages and the command.
    """
    missing = [name for name in load_config("local.yaml")["packages"] if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"The judge 'local' needs {', '.join(missing)}.", hint=f"Install it with: {install_line('local')}."
        )


def reusable(source: ModelSource) -> tuple[str | None, str | None]:
    """Return why the model's cache may not be shared between questions (None: it may), and its position state's name.

    With a sliding window an id sees the end of the beginning only: that is checked for the architectures whose entry
    says `windows`, whose layers are called with their window. For all others the cache is not shared.
    """
    entry = load_config("local.yaml")["reusable"].get(source.architecture)
    text = source.text_config
    windowed = bool(text.get("use_sliding_window")) or not _FULL.issuperset(text.get("layer_types") or ())
    # Models of the Mistral family have a window wherever the number stands, and no other sign of it.
    windowed |= bool(text.get("sliding_window")) and not text.keys() & {"use_sliding_window", "layer_types"}
    if windowed and not (entry or {}).get("windows"):
        return "attends through a sliding window, so that its cache cannot be shared", None
    return (None, entry["position_state"]) if entry else ("is not known to share its cache", None)


def find_model(argument: str | None, *, revision: str | None = None, local_files_only: bool = True) -> ModelSource:
    """Return the files behind `MODEL_OR_PATH`. Only with `local_files_only=False` is anything downloaded.

    Raises:
        UsageError: no model is named, or it is not a vision-language model. InputFileError: no such folder, or a broken
        one. ModelError: the model is not on this machine; the hint is the command that fetches it.
    """
    if not argument:
        raise UsageError("The judge 'local' needs a model.", hint="Write local:MODEL or local:FOLDER.")
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as VISION

    folder = find_folder(argument, revision=revision, local_files_only=local_files_only)
    config = read_config(argument, folder)
    if config["model_type"] not in VISION:
        raise UsageError(
            f"{argument!r} is a {config['architectures'][0]}, not a vision-language model.",
            hint="Use a model of the Qwen-VL, InternVL, SmolVLM2 or LLaVA family.",
        )
    return ModelSource(argument, folder, folder_revision(folder), config)


# `local:MODEL_OR_PATH`: an open vision-language model on this machine, through transformers.
#
# A packet's pictures and instruction are read once, and its questions, each on its own row, are answered behind them.
# Replies are greedy and held to their JSON schema. Nothing is downloaded unless asked for.


Reuse = Literal["batched", "sequential", "off"]
LAYOUT = 1
"""Version of the order and wording of a prompt's parts."""
SHARING = 2
"""Version of how a prefix is shared: each rounds in its own way."""
_GIB = 1 << 30


class LocalJudge(Judge):
    """A vision-language model as a judge, loaded at the first question and let go by `close`."""

    exclusive = True
    """Two such models may not fit into memory together: an evaluation asks one after the other."""

    def __init__(
        self,
        argument: str | None = None,
        *,
        device: str | None = None,
        dtype: str | None = None,
        quantize: Literal["nf4"] | None = None,
        reuse: Reuse = "batched",
        verify_reuse: float = 0.0,
        max_flip_rate: float = 0.05,
        revision: str | None = None,
        local_files_only: bool = True,
        structured: bool = True,
        max_new_tokens: int = 256,
        cache_bytes: int = 4 * _GIB,
    ) -> None:
        """Find the model's files and check what they are; weights are not read yet.

        device: `cpu`, `cuda`, `cuda:1`, `mps`; default the accelerator if there is one. dtype: default float32 on a
        CPU, elsewhere the checkpoint's own, but bfloat16 where that is float32. quantize: `nf4` holds the linear layers
        in 4 bits (bitsandbytes); on a CPU bfloat16 without it is faster. reuse: `batched` questions behind a
        shared prefix, `sequential` (the same, one at a time) or `off`. verify_reuse: the share of questions that are
        asked again the naive way; when more than `max_flip_rate` of the replies change (from 20 checks on), asking
        stops. cache_bytes: the limit of one batch's key-value caches.

        Raises:
            MissingExtraError: a package is missing. UsageError, InputFileError: no such model, or one that cannot be
            read. JudgeError: the model is not on this machine.
        """
        require_extra()
        if reuse not in get_args(Reuse):
            raise UsageError(f"reuse is {', '.join(get_args(Reuse))}, not {reuse!r}.")
        self.gate = ReuseGate(verify_reuse, max_flip_rate)
        self._source = find_model(argument, revision=revision, local_files_only=local_files_only)
        with sound_configuration(self._source.name):
            reason, self._position_state = reusable(self._source)
        self._reuse: Reuse = "off" if reason else reuse
        self._note = f"{self._source.architecture} {reason}; asked without reuse" if reason else None
        self._device = device or best_device()
        self._dtype = dtype or self._source.default_dtype(self._device)
        self._quantize = quantize
        if quantize is not None:
            self._check_four_bits()
        self._structured, self._max_new_tokens, self._cache_bytes = structured, max_new_tokens, cache_bytes
        self._asker: Asker | None = None

    def spec(self) -> Mapping[str, Any]:
        """Return revision, dtype, device, reuse, grammar and versions: everything that can change a reply."""
        from katha.eval_bridge.judges.local_model import WRITING

        spec: dict[str, Any] = {
            "name": f"local:{self._source.name}",
            "revision": self._source.revision,
            "architecture": self._source.architecture,
            "dtype": self._dtype,
            "device": self._device.split(":")[0],
            "reuse": self._reuse,
            "decoding": {"greedy": True, "max_new_tokens": self._max_new_tokens},
            "grammar": digest({**WRITING, "xgrammar": version("xgrammar")}) if self._structured else None,
            "layout": LAYOUT,
            "versions": {name: version(name) for name in ("torch", "transformers")},
        }
        if self._quantize is not None:
            spec["quantize"] = {self._quantize: version("bitsandbytes")}
        if self._reuse != "off":
            spec["sharing"] = SHARING
        if self._reuse == "batched":
            spec["cache_bytes"] = self._cache_bytes
        return spec | ({"note": self._note} if self._note else {})

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield one reply per prompt, in order; with `batched` a batch's replies come together.

        Raises:
            InputFileError: the weights cannot be loaded. JudgeError: they do not fit, or reuse changes replies.
        """
        if not prompts:
            return
        asker = self._load()
        packet = evidence_sha256(evidence) if self.gate.rate else ""
        for prompt, reply in zip(prompts, self._generate(asker, evidence, prompts), strict=True):
            if reply is None:
                error = f"The prompt is longer than the model's {asker.loaded.window} tokens."
                yield JudgeReply("not_asked", error=error)
                continue
            counts = {"input": reply.read - reply.reused, "cached": reply.reused, "output": len(reply.ids)}
            usage = {**counts, "reuse": self._reuse, **self._verified(asker, evidence, packet, prompt, reply)}
            yield self._typed(asker.loaded.decode(reply.ids), reply, prompt, usage)

    def ask_plainly(self, evidence: Evidence, prompts: Sequence[PlainPrompt]) -> Iterator[JudgeReply]:
        """Yield one reply per prompt, in order, with probabilities of the words that a prompt wants.

        Raises:
            InputFileError: the weights cannot be loaded. JudgeError: they do not fit.
        """
        from katha.eval_bridge.judges.local_model import answer_plainly

        if prompts:
            loaded = self._load().loaded
            yield from (answer_plainly(loaded, evidence, prompt) for prompt in prompts)

    def require_room(self) -> None:
        """Refuse a model whose weights alone are more than the device's memory.

        Raises:
            UsageError: with both sizes.
        """
        whole, wanted = whole_bytes(self._device), self._source.bytes_in(self._dtype, self._quantize)
        if whole is not None and wanted > whole:
            told = f"takes {wanted / _GIB:.1f} GiB in {self._quantize or self._dtype}; {self._device} has"
            raise UsageError(
                f"The judge 'local:{self._source.name}' {told} {whole / _GIB:.1f}.",
                hint="Use --judge-option quantize=nf4, a smaller dtype or model, or --judge-option device=cpu.",
            )

    def _check_four_bits(self) -> None:
        """Refuse weights that bitsandbytes does not hold in 4 bits: on a CPU it takes rows by 32 and columns by 64."""
        require_quantiser()
        odd = (shape for shape in self._source.linear_shapes() if shape[0] % 32 or shape[1] % 64)
        found = next(odd, None) if self._device.startswith("cpu") else None
        if found is not None:
            raise UsageError(
                f"{self._source.name!r} has a layer of {found[0]}x{found[1]} weights: a CPU holds it in no 4 bits.",
                hint="Leave quantize out, and use dtype=bfloat16 where memory is short.",
            )

    def close(self) -> None:
        """Let go of the model and its memory; the next question loads it again."""
        if self._asker is None:
            return
        self._asker = None
        let_go(self)

    def _load(self) -> Asker:
        from katha.eval_bridge.judges.local_model import Asker, Grammars, load_model, use_shared_attention

        if self._asker is None:
            check_device(self._device)
            free = free_bytes(self._device)
            if free is not None and self._source.bytes_in(self._dtype, self._quantize) > free:
                device_models().make_room(self._device, self)
            loaded = load_model(self._source, device=self._device, dtype=self._dtype, quantize=self._quantize)
            if self._reuse != "off":
                use_shared_attention(loaded.model)
            device_models().register(self._device, self)
            with sound_configuration(self._source.name):
                loaded.try_prompt()
                grammars = Grammars(loaded.tokenizer, loaded.vocabulary, loaded.stops) if self._structured else None
            self._asker = Asker(loaded, grammars, self._position_state, self._max_new_tokens, self._cache_bytes)
        return self._asker

    def _generate(self, asker: Asker, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[Generated | None]:
        """Yield one reply per prompt; None for a prompt that is longer than the model's window."""
        limit = asker.loaded.window - self._max_new_tokens
        if self._reuse == "off":
            for prompt in prompts:
                inputs = self._naive_inputs(asker, evidence, prompt)
                yield asker.naive(inputs, prompt) if inputs["input_ids"].shape[1] <= limit else None
            return
        packet = asker.loaded.encode(evidence, prompts, plain=not self._structured)
        fits = [len(ids) <= limit for ids in packet.prompts]
        short = packet.only(fits)
        asked = [prompt for prompt, fit in zip(prompts, fits, strict=True) if fit]
        pictures = sha256_hex("".join(map(sha256_hex, evidence.images)).encode())
        replies = asker.shared(short, asked, pictures, batched=self._reuse == "batched") if asked else iter(())
        for fit in fits:
            yield next(replies) if fit else None

    def _naive_inputs(self, asker: Asker, evidence: Evidence, prompt: JudgePrompt) -> dict[str, Any]:
        return asker.loaded.full_inputs(asker.loaded.messages(evidence, prompt, plain=not self._structured))

    def _verified(
        self, asker: Asker, evidence: Evidence, packet: str, prompt: JudgePrompt, reply: Generated
    ) -> dict[str, Any]:
        """Return what the gate says of this reply, for its usage."""
        if self._reuse == "off" or not self.gate.wants(packet, prompt_sha256(prompt)):
            return {}
        naive = asker.naive(self._naive_inputs(asker, evidence, prompt), prompt)
        found = self.gate.record(asker.loaded.decode(reply.ids), asker.loaded.decode(naive.ids))
        return {"reuse_check": found, "flip_rate": self.gate.flip_rate}

    def _typed(self, raw: str, reply: Generated, prompt: JudgePrompt, usage: dict[str, Any]) -> JudgeReply:
        from katha.eval_bridge.judges.local_model import grammar_sha256

        if self._structured:
            usage["grammar"] = grammar_sha256(prompt.schema)
        if not reply.ended:
            error = f"the reply did not end within {self._max_new_tokens} tokens"
            return JudgeReply("truncated", raw=raw, error=error, usage=usage)
        return parse_reply(raw, prompt, usage, plain=not self._structured)
