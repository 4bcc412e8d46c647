"""One JSON object from a language model: asked, read, and asked again once with what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from katha.errors import ModelError, ReplyError
from katha.jsonio import loads
from katha.models import TextModel, Turn
from katha.prompting import load_prompt

__all__ = ["write_one"]

Model = TypeVar("Model", bound=BaseModel)


def write_one(model: TextModel, prompt: str, schema: Mapping[str, Any], kind: type[Model], what: str) -> Model:
    """A record of `kind`; `what` names it in errors.

    Raises:
        ReplyError: what was written is none, even after one repair; or a refusal, or a cut-off reply. ModelError: the
        server gave no answer.
    """
    turns = [Turn("user", prompt)]
    problem = ""
    for _ in range(2):
        reply = model.complete(turns, schema)
        if reply.status == "transport_failed":
            raise ModelError(f"The model gave no {what}: {reply.error}.", hint="Give the same command again later.")
        if reply.status != "ok":
            raise ReplyError(
                f"The model gave no {what} ({reply.status}): {reply.error}.",
                hint="Try another model.",
                status=reply.status,
                raw=reply.text,
            )
        try:
            return kind.model_validate(loads(reply.text))
        except ValidationError as error:
            first = error.errors()[0]
            problem = f"Field {'.'.join(map(str, first['loc'])) or 'reply'}: {first['msg']}."
        except (ValueError, RecursionError) as error:
            problem = f"It is not one whole JSON object: {error}."
        repair = load_prompt("build/repair").render(problem=problem)
        turns = [turns[0], Turn("assistant", reply.text), Turn("user", repair)]
    raise ReplyError(
        f"The model wrote no {what}, not even after a repair: {problem}", hint="Try another model.", raw=reply.text
    )
