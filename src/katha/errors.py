"""Every error that katha raises on purpose.

    KathaError                 message + hint; exit code 1
    +-- UsageError             wrong use or bad input, refused before work starts; exit code 2
    |   +-- InputFileError     a file that cannot be read as what it should be
    |   +-- RecordError        a record or field that breaks the schema
    |   +-- PlanError          a plan that does not fit its story
    |   +-- UnknownPluginError no renderer, planner, judge or preset of that name
    |   +-- MissingExtraError  an optional dependency is not installed
    |   +-- AbsentModelError   a renderer's weights are not on this machine
    |   +-- OutputFolderError  the run's folder cannot be written or belongs to something else
    |   +-- UnfitFrameError    a frame that its renderer cannot draw as it is asked for (its prompt is too long)
    +-- StoreError             the disk failed (no space left, permission lost) while work went on
    |   +-- CorruptEntryError  a stored entry whose bytes do not have their hash (quarantined)
    +-- RenderError            a renderer could not make a frame
    |   +-- TransientRenderError  worth another try
    |   +-- BlankFrameError       one colour all over, or not a number: tried once more with the next seed
    |   +-- RefusedFrameError     a service would not draw it
    +-- BudgetError            --max-cost or --max-calls is reached; what was paid for is kept
    +-- ModelError             a language model cannot be used (not on this machine, too little memory, no credit)
    |   +-- ReplyError         what it wrote is not a plan, question or variant, even after one repair
    +-- JudgeError             a judge could not be asked at all
    |   +-- TransientJudgeError   worth another try

A message names the file, record and field and says what to do; `hint` holds the next step.
"""

from __future__ import annotations


class KathaError(Exception):
    """Base of every error raised on purpose: one sentence, and the next step in `hint`."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class UsageError(KathaError):
    """Wrong use or bad input, refused before work starts."""

    exit_code = 2


class InputFileError(UsageError):
    """A file that cannot be read as what it should be."""


class RecordError(UsageError):
    """A record or field that breaks the schema."""


class PlanError(UsageError):
    """A plan that does not fit its story."""


class UnknownPluginError(UsageError):
    """No renderer, planner, judge or preset of that name."""


class MissingExtraError(UsageError):
    """An optional dependency is not installed; the hint is the exact `pip install` line."""


class AbsentModelError(UsageError):
    """Weights that are not on this machine; the hint is the command that fetches them."""


class OutputFolderError(UsageError):
    """The run's folder cannot be written, or it belongs to something else."""


class UnfitFrameError(UsageError):
    """A frame that its renderer cannot draw as it is asked for: another frame, or another prompt, can be drawn."""


class BudgetError(KathaError):
    """The command's limit of dollars or calls is reached; nothing that was paid for is lost."""


class StoreError(KathaError):
    """The disk failed while work went on; everything already stored stays."""


class CorruptEntryError(StoreError):
    """A stored entry whose bytes do not have their hash; it has been quarantined."""


class RenderError(KathaError):
    """A renderer could not make a frame."""


class TransientRenderError(RenderError):
    """A renderer failed in a way that is worth another try."""


class BlankFrameError(RenderError):
    """A frame that is one colour all over (what NaN latents end as); it is tried once more with the next seed."""


class RefusedFrameError(RenderError):
    """A service would not draw the frame (a safety filter); asking again does not help, another prompt may."""


class ModelError(KathaError):
    """A language model cannot be used: not on this machine, too little memory, no credit left, no answer."""


class ReplyError(ModelError):
    """What a model wrote cannot be used, even after one repair. `status` is the typed failure, `raw` what it wrote."""

    def __init__(self, message: str, *, hint: str | None = None, status: str = "unparseable", raw: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.raw = raw


class JudgeError(KathaError):
    """A judge could not be asked at all."""


class TransientJudgeError(JudgeError):
    """A judge failed in a way that is worth another try."""


_WHY_UNREADABLE = {
    IsADirectoryError: "Give a file, not a folder.",
    FileNotFoundError: "Check the path.",
    PermissionError: "Allow reading it, or give a copy that may be read.",
}


def unreadable(path: object, error: OSError) -> InputFileError:
    """Return what to say of a file that the system does not let us read, and what to do about it."""
    reason = error.strerror or type(error).__name__
    return InputFileError(f"Cannot read {str(path)[:200]!r}: {reason}.", hint=_WHY_UNREADABLE.get(type(error)))


def first_line(error: BaseException) -> str:
    """The first line of what an error of another library says, or its type where it says nothing."""
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__
