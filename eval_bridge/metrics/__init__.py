"""The other papers' measures, beside STG: one small class each, over boards of any origin.

Where to begin with a metric of your own (`katha new metric NAME` writes this as a package):

1. **Where it goes.** A module of this package named after its paper (`vinabench.py`, `general.py`, ...), 150 to 500
   lines; two where prompts or geometry need their own. Prompts are files under `prompts/metrics/` (`load_prompt`). Give
   the class an entry point in `pyproject.toml`, group `katha.metrics`, then install again (`pip install -e .`).
2. **What it is.** A class with `card` (a `MetricCard`, made once on the class), `spec()` (everything that changes a
   value: version, models, options; it is hashed) and `measure(board, context)`, or `measure_set(boards, context)` for
   a value of all boards of a method together. Options are keyword-only parameters with defaults; `general.ClipText` is
   the example. Nothing is loaded before the first use.
3. **What it gets.** A `MetricBoard`: `frames` (bytes, kind, scene), `texts()` (each frame's scene text or None),
   `record`, `plan`, `references` (gold pictures), `characters` (pictures by name), `narrative` (VinaBench's
   annotations). A `MetricContext`: `mode` (`paper` or `code`); `features.images(encoder, [bytes])` and
   `features.texts(encoder, [str])`, rows that are computed once and kept by content; `ask(metric, story, method,
   images, {id: PlainPrompt})`, which puts prompts as they stand to the one judging engine, cached, paced and within the
   budget; `pool()`, the set's gold pictures. Read an answer by `text_of(answer)` or `share_of(answer, ("Yes", "yes"))`,
   the probability of its first token. A prompt with `sample=1` is asked anew; `examples` are shots.
4. **What it yields.** `board.value(part, number, frame=..., item=..., n=...)`; `mean_value` makes a board's value of
   several numbers. What cannot be measured is `raise Unmeasured("why")` for the whole board, or
   `board.value(part, None, reason="why")` for one value, with equal words for equal causes: they are counted. Never 0
   for a failure. `JudgeError`, `BudgetError` and `StoreError` pass through; anything else that is raised becomes the
   null's reason.
5. **How it is tested.** `measure_board(metric, board, context)` runs it. `tests/support/metric_boards.py` makes boards
   (`make_board`), contexts (`make_context`), encoders with vectors by hand (`HandEncoder`) and small real models; a
   judge is scripted by `katha.testing.ScriptedJudge(lambda evidence, prompt: ...)`, whose prompts are `PlainPrompt`
   (`prompt.text`) and whose entries are texts or `scripted_words(Yes=0.8, No=0.1)`.
6. **Where it is told.** A row in the table of `docs/metrics.md`, with the published number that proves it.
"""

from katha.eval_bridge.metrics.base import (
    AnyMetric,
    Metric,
    SetMetric,
    mean_value,
    measure_board,
    measure_set,
    mode_of,
)
from katha.eval_bridge.metrics.boards import MetricBoard
from katha.eval_bridge.metrics.context import MetricContext, Unmeasured, share_of, text_of
from katha.eval_bridge.metrics.features import Features, ImageEncoder, TextEncoder, unit

__all__ = [
    "AnyMetric",
    "Features",
    "ImageEncoder",
    "Metric",
    "MetricBoard",
    "MetricContext",
    "SetMetric",
    "TextEncoder",
    "Unmeasured",
    "mean_value",
    "measure_board",
    "measure_set",
    "mode_of",
    "share_of",
    "text_of",
    "unit",
]
