"""Boards for viewers who never saw the text, people or vision-language models, and what they say of the judge.

`pack RUN... --out OUT --key KEY.json` writes one folder a board, named by a number that says nothing: `board.png`
(the frames, numbered), `questions.json` (the image-only reporting questions with their options), `told.png` (each frame
with the sentence that it draws) and `story.txt`; `KEY.json`, which no viewer sees, keeps gold and judge's answers.

The questions of a board, read together, tell its story. `pack ... --singly N` writes a folder for each of N viewers,
`OUT/01` and so on, with each board once (`board.png`) and one of its questions; the numbers of boards differ between
viewers. If N is at least the most questions of a board, every question is asked, and if it is twice that, of both
halves of the viewers.

A viewer answers with one JSON file: `{BOARD: {"answers": {QUESTION: option}, "frames": ["yes"|"partly"|"no", ...],
"story": "yes"|"partly"|"no"}}`: `answers` after `board.png`, `frames` after `told.png`, `story` at the end.

`score --key KEY.json VIEWER.json...` (each viewer may have seen some of the boards) prints shares right (judge and
viewers over the questions that both answered, overall and by dimension) and rank correlations: of judge with viewers
over questions and over boards, of one half of a board's viewers with the other, who answered the same questions, of one
half of its questions with the other, which is as far as viewers' answers tell one board from another whatever is asked,
and of "this is that story" with the judge. A board's score is the mean over its questions, a question's the mean over
its viewers. In brackets: 95% intervals, boards drawn anew.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from statistics import mean
from typing import Any

__all__ = ["main"]

_WIDTH, _COLUMNS = 480, 3
_LEAST = 2
"""Different values on either side, without which nothing is ranked."""
_RESAMPLES = 1000
_SPLITS = 100
"""Random halves of each board's questions."""
_VERDICTS = {"yes": 1.0, "partly": 0.5, "no": 0.0}


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


@cache
def _sheet(pictures: tuple[Path, ...], captions: tuple[str, ...]) -> bytes:
    """Return a PNG of the frames in reading order, numbered, with their captions below where there are any."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size=15)
    lines = [textwrap.wrap(f"{at}. {text}", 60) for at, text in enumerate(captions, 1)]
    foot = 8 + 19 * max(len(item) for item in lines)
    opened = [Image.open(path).convert("RGB") for path in pictures]
    height = max(round(_WIDTH * item.height / item.width) for item in opened)
    across = min(_COLUMNS, len(opened))
    sheet = Image.new("RGB", (across * (_WIDTH + 8), -(-len(opened) // across) * (height + foot + 8)), "white")
    pen = ImageDraw.Draw(sheet)
    for at, (picture, text) in enumerate(zip(opened, lines, strict=True)):
        left, top = at % across * (_WIDTH + 8), at // across * (height + foot + 8)
        sheet.paste(picture.resize((_WIDTH, round(_WIDTH * picture.height / picture.width))), (left, top))
        pen.multiline_text((left + 4, top + height + 4), "\n".join(text), fill="black", font=font)
    written = io.BytesIO()
    sheet.save(written, "PNG")
    return written.getvalue()


def _asked(run: Path) -> dict[str, dict[str, Any]]:
    """Return the questions for viewers by a name; their own ids name the story ("donkey_and_salt_q3")."""
    asked = _rows(run / "story.jsonl")[0]["recoverability_questions"]
    shown = (item for item in asked if item["role"] == "reporting" and item.get("options"))
    return {f"q{at:02d}": item for at, item in enumerate(shown, 1)}


def _board(run: Path, folder: Path, asked: Mapping[str, Mapping[str, Any]], singly: bool) -> dict[str, Any]:
    """Write one board's files and return what the key keeps of it."""
    folder.mkdir(parents=True)
    story = _rows(run / "story.jsonl")[0]
    board = json.loads((run / "storyboard.json").read_text("utf-8"))
    plan = json.loads((run / "plan.json").read_text("utf-8"))
    captions = {panel["index"]: panel["caption"] for panel in plan["panels"]}
    pictures = tuple(run / frame["image"] for frame in board["frames"])
    (folder / "board.png").write_bytes(_sheet(pictures, ("",) * len(pictures)))
    shown = [
        {"question_id": name, "question": item["question"], "options": item["options"]} for name, item in asked.items()
    ]
    (folder / "questions.json").write_text(json.dumps(shown, indent=1, ensure_ascii=False), "utf-8")
    if not singly:
        told = (captions[item["scene"]] if item["kind"] == "scene" else item["prompt"] for item in board["frames"])
        (folder / "told.png").write_bytes(_sheet(pictures, tuple(told)))
        (folder / "story.txt").write_text(story["story_text"], "utf-8")
    names = {item["question_id"]: name for name, item in asked.items()}
    answered = {
        names[row["question_id"]]: row["answer"]
        for row in _rows(run / "answers.jsonl")
        if row["condition"] == "image" and row["method"] == board["mode"] and row["status"] == "ok"
        if row["question_id"] in names
    }
    return {
        "run": run.name,
        "frames": len(pictures),
        "questions": {name: [item["question_type"], item["gold_answer"]] for name, item in asked.items()},
        "judge": answered,
        "coverage": plan.get("coverage"),
    }


def _pack(runs: Sequence[Path], out: Path, key: Path, seed: int, singly: int) -> None:
    questions = {run.name: _asked(run) for run in runs}
    if len(questions) < len(runs):
        sys.exit("Two runs have the same name: a viewer would see one story twice.")
    viewers = [out / f"{at:02d}" for at in range(1, singly + 1)] or [out]
    places = [(at, run) for at in range(len(viewers)) for run in runs if questions[run.name] or not singly]
    chance, kept, width = random.Random(seed), {}, max(2, len(str(len(places))))
    order = chance.sample(places, len(places))
    # In their own order, half of the viewers would get the questions of one kind.
    hands = {name: chance.sample(list(asked), len(asked)) for name, asked in questions.items()}
    for number, (at, run) in enumerate(order, 1):
        asked, hand = questions[run.name], hands[run.name]
        dealt = [hand[at % len(hand)]] if singly else list(asked)
        name = f"{number:0{width}d}"
        kept[name] = _board(run, viewers[at] / name, {one: asked[one] for one in dealt}, bool(singly))
    key.write_text(json.dumps(kept, indent=1, ensure_ascii=False), "utf-8")
    put = {(row["run"], name) for row in kept.values() for name in row["questions"]}
    print(f"{len({row['run'] for row in kept.values()})} boards in {out}; the key is {key}.")
    print(f"{len(put)} of {sum(map(len, questions.values()))} questions are asked.")


def _same(answer: object, gold: str) -> bool:
    return isinstance(answer, str) and answer.strip().casefold() == gold.strip().casefold()


_Right = Mapping[tuple[str, str], float]
"""Share right by (run, question)."""


def _shares(key: Mapping[str, Any], answers: Mapping[str, Mapping[str, Any]]) -> _Right:
    """Return 1.0 or 0.0 for the questions of the boards seen; one of theirs without an answer is wrong."""
    return {
        (kept["run"], name): float(_same(answers[board].get(name), gold))
        for board, kept in key.items()
        if board in answers
        for name, (_, gold) in kept["questions"].items()
    }


def _pool(seen: Sequence[_Right]) -> _Right:
    """Return the mean over the viewers whom a question was asked, for each."""
    return {
        item: mean(one[item] for one in seen if item in one) for item in sorted({item for one in seen for item in one})
    }


def _halves(seen: Sequence[_Right]) -> tuple[_Right, _Right]:
    """Return what either half of a board's viewers had right of it, for the boards that at least two saw."""
    halves: tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]] = {}, {}
    for board in sorted({board for one in seen for board, _ in one}):
        saw = [one for one in ({item: one[item] for item in one if item[0] == board} for one in seen) if one]
        middle = len(saw) // 2
        for half, some in zip(halves, (saw[:middle], saw[middle:]) if middle else (), strict=False):
            half.update(_pool(some))
    return halves


def _by_board(right: _Right) -> dict[str, list[float]]:
    grouped: dict[str, list[float]] = defaultdict(list)
    for (board, _), value in right.items():
        grouped[board].append(value)
    return dict(grouped)


def _scores(right: _Right) -> dict[str, float]:
    return {board: 100 * mean(values) for board, values in _by_board(right).items()}


def _behind(right: _Right) -> str:
    counts = [len(values) for values in _by_board(right).values()]
    return f"{mean(counts):.1f} ({min(counts)} to {max(counts)})"


def _rank(left: Mapping[str, float], right: Mapping[str, float], boards: Sequence[str]) -> float:
    from scipy.stats import spearmanr

    if min(len({side[name] for name in boards}) for side in (left, right)) < _LEAST:
        return float("nan")  # nothing to rank
    return float(spearmanr([left[name] for name in boards], [right[name] for name in boards]).statistic)


def _with_interval(measure: Callable[[Sequence[str]], float], boards: Sequence[str], digits: int) -> str:
    import numpy as np

    drawn = np.random.default_rng(42).integers(0, len(boards), (_RESAMPLES, len(boards)))
    values = [value for row in drawn if (value := measure([boards[at] for at in row])) == value]
    low, high = np.percentile(values, (2.5, 97.5)) if values else (float("nan"), float("nan"))
    return f"{measure(boards):.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _ranked(left: Mapping[str, float], right: Mapping[str, float]) -> str:
    return _with_interval(partial(_rank, left, right), sorted(set(left) & set(right)), 2)


def _by_question(left: _Right, right: _Right) -> str:
    """Return the rank correlation over the questions of `right`."""
    items: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for item in right:
        items[item[0]].append(item)

    def measure(boards: Sequence[str]) -> float:
        asked = [item for board in boards for item in items[board]]
        ours, theirs = ({str(at): side[item] for at, item in enumerate(asked)} for side in (left, right))
        return _rank(ours, theirs, list(ours))

    return _with_interval(measure, sorted(items), 2)


def _other_questions(right: _Right) -> float:
    """Return how one half of each board's questions ranks the boards as its other half does: the mean over random
    halves, of boards with two questions or more."""
    chance, found = random.Random(42), []
    boards = {board: values for board, values in _by_board(right).items() if len(values) > 1}
    for _ in range(_SPLITS):
        mixed = {board: chance.sample(values, len(values)) for board, values in boards.items()}
        first, second = ({board: mean(values[at::2]) for board, values in mixed.items()} for at in (0, 1))
        value = _rank(first, second, sorted(boards)) if boards else float("nan")
        found += [value] if value == value else []
    return mean(found) if found else float("nan")


def _share(right: _Right) -> str:
    sums = {board: (sum(values), len(values)) for board, values in _by_board(right).items()}
    return _with_interval(
        lambda boards: 100 * sum(sums[board][0] for board in boards) / sum(sums[board][1] for board in boards),
        sorted(sums),
        1,
    )


def _compared(judge: _Right, viewers: _Right, items: Iterable[tuple[str, str]]) -> str:
    """Return the shares right of these questions, and how much more the viewers have."""
    ours, theirs, more = {}, {}, {}
    for item in items:
        ours[item], theirs[item], more[item] = judge[item], viewers[item], viewers[item] - judge[item]
    return f"judge {_share(ours)}, viewers {_share(theirs)}, viewers more by {_share(more)}"


def _verdicts(name: str, verdicts: Iterable[str]) -> None:
    counts = Counter(verdicts)
    if total := sum(counts.values()):
        shares = (f"{item} {counts[item]} ({100 * counts[item] / total:.0f}%)" for item in _VERDICTS)
        print(f"{name}: {', '.join(shares)}")


def _answers(key: Mapping[str, Any], judge: _Right, seen: Sequence[_Right]) -> None:
    """Print judge and viewers over the questions that viewers were asked."""
    kinds = {(kept["run"], name): kind for kept in key.values() for name, (kind, _) in kept["questions"].items()}
    together = _pool(seen)
    print(f"right: {_compared(judge, together, together)}")
    for kind, count in Counter(kinds[item] for item in together).most_common():
        print(f"  {kind} ({count}): {_compared(judge, together, (item for item in together if kinds[item] == kind))}")
    ours = _scores({item: judge[item] for item in together})
    print(f"questions behind a board: {_behind(together)}; answers by viewers: {sum(map(len, seen))}")
    print(f"rank correlation over {len(together)} questions: judge with viewers {_by_question(judge, together)}")
    print(f"rank correlation over {len(ours)} boards: judge with viewers {_ranked(ours, _scores(together))}")
    print(f"  half of the questions with the other half, by viewers: {_other_questions(together):.2f}")
    first, second = map(_scores, halves := _halves(seen))
    if len(second) > 2:
        behind = " and ".join(map(_behind, halves))
        print(f"  half of the viewers with the other half {_ranked(first, second)}; questions behind a board: {behind}")


def _score(key: Mapping[str, Any], viewers: Sequence[Mapping[str, Any]]) -> None:
    judge = _shares(key, {board: kept["judge"] for board, kept in key.items()})
    seen = [
        _shares(key, {board: told["answers"] for board, told in viewer.items() if "answers" in told})
        for viewer in viewers
    ]
    print(f"{len({kept['run'] for kept in key.values()})} boards, {len(judge)} questions, {len(viewers)} viewers")
    if any(seen):
        _answers(key, judge, seen)
    _verdicts("frames", (item for viewer in viewers for told in viewer.values() for item in told.get("frames", ())))
    stories: dict[str, list[str]] = defaultdict(list)
    for board, told in ((board, told) for viewer in viewers for board, told in viewer.items() if "story" in told):
        stories[key[board]["run"]].append(told["story"])
    _verdicts("this is that story", (item for values in stories.values() for item in values))
    share = {board: mean(_VERDICTS[item] for item in values) for board, values in stories.items()}
    if len(share) > 2:
        print(f"rank correlation of that share with the judge's score {_ranked(share, _scores(judge))}")
    covered = [row for row in {kept["run"]: kept.get("coverage") for kept in key.values()}.values() if row]
    if covered:
        drawn, visible = sum(item["drawn"] for item in covered), sum(item["visible"] for item in covered)
        print(
            f"sentences with something to see that reach a picture: {drawn} of {visible} ({100 * drawn / visible:.0f}%)"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Pack boards, or score what viewers answered."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.viewers", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    pack = verbs.add_parser("pack", help="write boards and questions for viewers")
    pack.add_argument("runs", nargs="+", type=Path)
    pack.add_argument("--out", required=True, type=Path)
    pack.add_argument("--key", required=True, type=Path)
    pack.add_argument("--seed", type=int, default=42)
    pack.add_argument("--singly", type=int, default=0, metavar="N", help="for N viewers, one question a board for each")
    score = verbs.add_parser("score", help="compare viewers with the judge")
    score.add_argument("viewers", nargs="+", type=Path)
    score.add_argument("--key", required=True, type=Path)
    told = parser.parse_args(arguments)
    if told.verb == "pack":
        if told.out.exists():
            sys.exit(f"{told.out} exists; name a new folder.")
        _pack(told.runs, told.out, told.key, told.seed, told.singly)
    else:
        key = json.loads(told.key.read_text("utf-8"))
        viewers = {path: json.loads(path.read_text("utf-8")) for path in told.viewers}
        for path, viewer in viewers.items():
            if strange := sorted(set(viewer) - set(key)):
                sys.exit(f"{path}: the key has no board {', '.join(strange)}.")
            if len({key[board]["run"] for board in viewer}) < len(viewer):
                sys.exit(f"{path}: a board twice. A file has the answers of one viewer.")
        _score(key, list(viewers.values()))


if __name__ == "__main__":
    main()
