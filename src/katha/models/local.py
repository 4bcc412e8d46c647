"""Language models on this machine, through transformers: greedy, held to a schema by xgrammar, with a LoRA adapter."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from katha.errors import (
    InputFileError,
    KathaError,
    MissingExtraError,
    ModelError,
    OutputFolderError,
    UsageError,
    first_line,
)
from katha.installing import install_line
from katha.models.base import Completion, Heard, Turn, grammar_schema, neutral
from katha.models.checkpoints import (
    ADAPTER_NOTE,
    WIDTHS,
    ModelSource,
    adapter_base,
    best_device,
    check_adapter,
    check_device,
    device_models,
    find_folder,
    folder_revision,
    free_bytes,
    let_go,
    load_adapter,
    load_pretrained,
    read_config,
    require_local,
    sound_configuration,
)

DEFAULT_MODEL = "google/gemma-3-4b-it"
_BESIDE_WEIGHTS = frozenset((".json", ".jinja", ".txt", ".model"))
"""What lies beside a model's weights: configurations, tokenizers and chat templates."""
_WRITING: Mapping[str, Any] = {"any_whitespace": False, "strict_mode": True}
"""How grammars are compiled. Free white space lets a model write blanks up to the limit."""


def find_language_model(argument: str | None, revision: str | None = None) -> ModelSource:
    """Return the files of `MODEL_OR_PATH` (default Gemma 3 4B); nothing is downloaded.

    Raises:
        InputFileError: no such folder, or a broken one. ModelError: not on this machine. UsageError: it writes no text.
    """
    name = argument or DEFAULT_MODEL
    folder = find_folder(name, revision=revision)
    config = read_config(name, folder)
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as writers

    if config["model_type"] not in writers:
        raise UsageError(
            f"{name!r} is a {config['architectures'][0]}, which writes no text.", hint="Use a model like Gemma 3."
        )
    return ModelSource(name, folder, folder_revision(folder), config)


@dataclass(frozen=True)
class _Loaded:
    model: Any
    tokenizer: Any
    compiler: Any
    stops: tuple[int, ...]
    window: int


class LocalModel:
    """A causal language model from a folder or the Hugging Face cache, loaded at the first call."""

    def __init__(
        self,
        argument: str | None = None,
        *,
        adapter: Path | None = None,
        device: str | None = None,
        dtype: str | None = None,
        revision: str | None = None,
        max_tokens: int = 8192,
    ) -> None:
        """Find the files of the model and of the adapter, and check that they belong together; no weights are read.

        Raises:
            MissingExtraError: a package is missing. UsageError, InputFileError: no such model or adapter, or an adapter
            of another model. ModelError: the model is not on this machine, or does not fit into its memory.
        """
        require_local("A local language model")
        self._source = find_language_model(argument, revision)
        self._adapter = check_adapter(adapter, self._source) if adapter is not None else None
        self._device = device or best_device()
        self._dtype = dtype or self._source.default_dtype(self._device)
        if self._dtype not in WIDTHS:
            raise UsageError(f"dtype is {', '.join(WIDTHS)}, not {self._dtype!r}.")
        self._max_tokens = max_tokens
        self._loaded: _Loaded | None = None

    def spec(self) -> Mapping[str, Any]:
        """Return revision, adapter, dtype, device, decoding, grammar and versions."""
        return {
            "name": f"local:{self._source.name}",
            "revision": self._source.revision,
            "adapter": folder_revision(self._adapter) if self._adapter is not None else None,
            "dtype": self._dtype,
            "device": self._device.split(":")[0],
            "decoding": {"greedy": True, "max_tokens": self._max_tokens},
            "grammar": dict(_WRITING),
            "versions": {name: version(name) for name in ("torch", "transformers", "xgrammar", "peft")},
        }

    def complete(
        self, turns: Sequence[Turn], schema: Mapping[str, Any] | None, heard: Heard | None = None
    ) -> Completion:
        """Return the reply, held to `schema` token by token. Pictures are left out: the model reads text alone.

        Raises:
            InputFileError: the weights cannot be loaded. ModelError: they do not fit into memory.
        """
        loaded = self._load()
        ids = self._prompt(loaded, turns)
        room = min(self._max_tokens, loaded.window - ids.shape[1])
        if room < 1:
            error = f"the prompt has {ids.shape[1]} tokens, the model reads {loaded.window}"
            return Completion("not_asked", error=error)
        written = self._generate(loaded, ids, schema, room, heard)
        usage = {"model": self._source.name, "tokens": {"input": int(ids.shape[1]), "output": len(written)}}
        ended = bool(written) and written[-1] in loaded.stops
        text = loaded.tokenizer.decode(written, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        if not ended:
            return Completion("truncated", text, f"the reply did not end within {room} tokens", usage)
        return Completion("ok", text, usage=usage)

    def close(self) -> None:
        """Let go of the model and its memory; the next call loads it again."""
        if self._loaded is not None:
            self._loaded = None
            let_go(self)

    def _prompt(self, loaded: _Loaded, turns: Sequence[Turn]) -> Any:
        rows = [{"role": turn.role, "content": neutral(turn.text, loaded.tokenizer)} for turn in turns]
        batch = loaded.tokenizer.apply_chat_template(
            rows, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
        )
        return batch["input_ids"].to(self._device)

    def _generate(
        self, loaded: _Loaded, ids: Any, schema: Mapping[str, Any] | None, room: int, heard: Heard | None
    ) -> list[int]:
        import torch
        from xgrammar.contrib.hf import LogitsProcessor

        held = []
        if schema is not None:
            grammar = loaded.compiler.compile_json_schema(json.dumps(grammar_schema(schema)), **_WRITING)
            held.append(LogitsProcessor(grammar))
        try:
            with torch.inference_mode():
                out = loaded.model.generate(
                    input_ids=ids,
                    attention_mask=torch.ones_like(ids),
                    max_new_tokens=room,
                    logits_processor=held,
                    streamer=_Counter(room, heard) if heard is not None else None,
                )
        except (torch.OutOfMemoryError, MemoryError) as error:
            raise _no_room(self._source.name, self._device) from error
        written: list[int] = out[0, ids.shape[1] :].tolist()
        return written

    def _load(self) -> _Loaded:
        if self._loaded is None:
            import xgrammar

            check_device(self._device)
            try:
                _check_room(self._source, self._device, self._dtype)
            except ModelError:
                device_models().make_room(self._device, self)
            model, tokenizer = load_weights(self._source, self._device, self._dtype)
            device_models().register(self._device, self)
            if self._adapter is not None:
                model = load_adapter(model, self._adapter, self._source.name)
            model.eval()
            with sound_configuration(self._source.name):
                stops = _plain_decoding(model, tokenizer)
                width = model.get_output_embeddings().weight.shape[0]
                info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=width, stop_token_ids=list(stops))
                window = int(model.config.get_text_config().max_position_embeddings)
                made = _Loaded(model, tokenizer, xgrammar.GrammarCompiler(info, max_threads=1), stops, window)
                self._prompt(made, [Turn("user", "x")])  # a template that is none is told now, not at each story
            self._loaded = made
        return self._loaded


_EVERY = 16
"""Tokens between two words on how far a reply is."""


class _Counter:
    """What `generate` hands its tokens to: the prompt first, then each new one."""

    def __init__(self, room: int, heard: Heard) -> None:
        self._room, self._heard, self._count = room, heard, -1

    def put(self, value: Any) -> None:
        """Count one token."""
        self._count += 1
        if self._count % _EVERY == 0:
            self._heard(self._count, self._room)

    def end(self) -> None:
        """Tell the whole count."""
        self._heard(self._count, self._room)


def require_quantiser() -> None:
    """Check that what holds weights in 4 bits is there; nothing is imported.

    Raises:
        MissingExtraError: with the command that installs it.
    """
    if find_spec("bitsandbytes") is None:
        raise MissingExtraError(
            "Weights in 4 bits (nf4) need bitsandbytes.", hint=f"Install it with: {install_line('qlora')}."
        )


def in_four_bits(device: str, dtype: str) -> dict[str, Any]:
    """Return the options of `from_pretrained` that hold linear layers in nf4, with their constants quantised, too.

    Raises:
        MissingExtraError: bitsandbytes is not installed.
    """
    require_quantiser()
    import torch
    from transformers import BitsAndBytesConfig

    held = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=getattr(torch, dtype),
    )
    return {"quantization_config": held, "device_map": {"": device}}


def load_weights(source: ModelSource, device: str, dtype: str, *, quantize: str | None = None) -> tuple[Any, Any]:
    """Return model and tokenizer from the folder (safetensors only); nothing is fetched.

    quantize: `nf4` holds the linear layers in 4 bits.

    Raises:
        InputFileError: weights or tokenizer are missing, damaged or without a chat template. ModelError: no room.
        UsageError: no such device.
    """
    check_device(device)
    if quantize is None:
        _check_room(source, device, dtype)
    from transformers import AutoModelForCausalLM, AutoTokenizer

    held = in_four_bits(device, dtype) if quantize else {}
    try:
        model, tokenizer = load_pretrained(
            AutoModelForCausalLM, AutoTokenizer, source.folder, source.name, dtype=dtype, **held
        )
    except MemoryError as error:
        raise _no_room(source.name, "cpu") from error
    if not tokenizer.chat_template:
        raise InputFileError(f"{source.name!r} has no chat template.", hint="Use an instruction-tuned model.")
    import torch

    try:
        return model if quantize else model.to(device), tokenizer
    except torch.OutOfMemoryError as error:
        raise _no_room(source.name, device) from error
    except (RuntimeError, AssertionError) as error:
        reason = first_line(error)
        raise UsageError(f"The model cannot be put on {device!r}: {reason}", hint="Choose another device.") from error


def _plain_decoding(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Replace the checkpoint's sampling defaults with greedy decoding, and return the ids that end a reply: the
    tokenizer's, the model's, and the chat format's end of a turn."""
    from transformers import GenerationConfig

    given = model.generation_config.eos_token_id if model.generation_config is not None else None
    found = {tokenizer.eos_token_id, *(given if isinstance(given, list) else [given])}
    turn = tokenizer.convert_tokens_to_ids("<end_of_turn>")
    if turn != tokenizer.unk_token_id:
        found.add(turn)
    stops = tuple(sorted(one for one in found if one is not None))
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else stops[0]
    model.generation_config = GenerationConfig(
        do_sample=False, num_beams=1, repetition_penalty=1.0, eos_token_id=list(stops), pad_token_id=pad, use_cache=True
    )
    return stops


def _check_room(source: ModelSource, device: str, dtype: str) -> None:
    """Refuse weights that outgrow the free memory (ModelError)."""
    need, free = source.bytes_in(dtype), free_bytes(device)
    if free is not None and need > free:
        raise ModelError(
            f"{source.name!r} needs {need / 2**30:.1f} GiB in {dtype}; {device} has {free / 2**30:.1f} GiB free.",
            hint="Use a smaller model, dtype bfloat16, or a model behind an API.",
        )


def _no_room(name: str, device: str) -> KathaError:
    return ModelError(f"{name!r} does not fit into the memory of {device}.", hint="Use a smaller model or bfloat16.")


def merge_adapter(adapter: Path, out: Path, *, base: str | None = None, dtype: str | None = None) -> ModelSource:
    """Write the base model with the adapter's matrices added to its own into `out`, for servers and other programs.

    base: where the base model lies, unless the adapter's note or configuration says. dtype: default as stored. The note
    goes along, so that `--planner gemma-st:OUT` leaves out what the adapter was not taught. Returns the base.

    Raises:
        InputFileError, ModelError: adapter or base are not here, or not of each other. OutputFolderError: `out` is
        there already. UsageError: no such dtype. MissingExtraError: a package is missing.
    """
    require_local("Merging an adapter")
    if dtype is not None and dtype not in WIDTHS:
        raise UsageError(f"dtype is {', '.join(WIDTHS)}, not {dtype!r}.")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OutputFolderError(f"{str(out)!r} is there already.", hint="Choose another --out, or remove it.")
    source = find_language_model(base or adapter_base(adapter))
    checked = check_adapter(adapter, source)
    model, tokenizer = load_weights(source, "cpu", dtype or source.stored_dtype)
    merged = load_adapter(model, checked, source.name).merge_and_unload()
    out.mkdir(parents=True, exist_ok=True)
    for path in (source.folder.iterdir(), [checked / ADAPTER_NOTE]):
        for file in path:
            if file.is_file() and file.suffix in _BESIDE_WEIGHTS and not file.name.endswith(".index.json"):
                shutil.copyfile(file, out / file.name)
    merged.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return source
