"""Boards for viewers who never saw the text, people or vision-language models, and what they say of the judge.

`pack RUN... --out OUT --key KEY.json` writes one folder a board, named by a number that says nothing: `board.png`
(the frames, numbered), `questions.json` (the image-only reporting questions with their options), `told.png` (each frame
with the sentence that it draws) and `story.txt`; `KEY.json`, which no viewer sees, keeps gold and judge's answers.

A viewer answers with one JSON file: `{BOARD: {"answers": {QUESTION: option}, "frames": ["yes"|"partly"|"no", ...],
"story": "yes"|"partly"|"no"}}`: `answers` after `board.png`, `frames` after `told.png`, `story` at the end.

`score --key KEY.json VIEWER.json...` (each viewer may have seen some of the boards) prints shares right (judge and
viewers, overall and by dimension), rank correlations over boards (judge with viewers, viewers with each other, "this is
that story" with the judge).
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

__all__ = ["main"]

_WIDTH, _COLUMNS = 480, 3
_LEAST = 2
"""Different values on either side, without which nothing is ranked."""
_VERDICTS = {"yes": 1.0, "partly": 0.5, "no": 0.0}


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _sheet(pictures: Sequence[Path], captions: Sequence[str], target: Path) -> None:
    """Write the frames in reading order, numbered, with their captions below where there are any."""
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
    sheet.save(target)


def _board(run: Path, folder: Path) -> dict[str, Any]:
    """Write one board's files and return what the key keeps of it."""
    folder.mkdir(parents=True)
    story = _rows(run / "story.jsonl")[0]
    board = json.loads((run / "storyboard.json").read_text("utf-8"))
    plan = json.loads((run / "plan.json").read_text("utf-8"))
    captions = {panel["index"]: panel["caption"] for panel in plan["panels"]}
    pictures = [run / frame["image"] for frame in board["frames"]]
    _sheet(pictures, ["" for _ in pictures], folder / "board.png")
    told = [captions[item["scene"]] if item["kind"] == "scene" else item["prompt"] for item in board["frames"]]
    _sheet(pictures, told, folder / "told.png")
    asked = [item for item in story["recoverability_questions"] if item["role"] == "reporting" and item.get("options")]
    # A question's own id names its story ("donkey_and_salt_q3"), which no viewer may know.
    names = {item["question_id"]: f"q{at:02d}" for at, item in enumerate(asked, 1)}
    shown = [
        {"question_id": names[item["question_id"]], "question": item["question"], "options": item["options"]}
        for item in asked
    ]
    (folder / "questions.json").write_text(json.dumps(shown, indent=1, ensure_ascii=False), "utf-8")
    (folder / "story.txt").write_text(story["story_text"], "utf-8")
    answered = {
        names[row["question_id"]]: row["answer"]
        for row in _rows(run / "answers.jsonl")
        if row["condition"] == "image" and row["method"] == board["mode"] and row["status"] == "ok"
        if row["question_id"] in names
    }
    questions = {names[item["question_id"]]: [item["question_type"], item["gold_answer"]] for item in asked}
    return {
        "run": run.name,
        "frames": len(pictures),
        "questions": questions,
        "judge": answered,
        "coverage": plan.get("coverage"),
    }


def _pack(runs: Sequence[Path], out: Path, key: Path, seed: int) -> None:
    names = [f"{at:02d}" for at in range(1, len(runs) + 1)]
    order = random.Random(seed).sample(list(runs), len(runs))
    kept = {name: _board(run, out / name) for name, run in zip(names, order, strict=True)}
    key.write_text(json.dumps(kept, indent=1, ensure_ascii=False), "utf-8")
    print(f"{len(kept)} boards in {out}; the key is {key}.")


def _same(answer: object, gold: str) -> bool:
    return isinstance(answer, str) and answer.strip().casefold() == gold.strip().casefold()


def _shares(key: Mapping[str, Any], answers: Mapping[str, Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """Return 1.0 or 0.0 by (board, question) of the boards seen; a question of theirs without an answer is wrong."""
    return {
        (board, name): float(_same(answers[board].get(name), gold))
        for board, kept in key.items()
        if board in answers
        for name, (_, gold) in kept["questions"].items()
    }


def _two(
    seen: Sequence[Mapping[tuple[str, str], float]], boards: Mapping[tuple[str, str], str]
) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]:
    """What the first and what the second viewer had right of each board that two saw."""
    pools: tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]] = {}, {}
    for board in sorted(set(boards.values())):
        both = [one for one in seen if any(boards[item] == board for item in one)][:2]
        for pool, one in zip(pools, both if len(both) > 1 else (), strict=False):
            pool.update({item: value for item, value in one.items() if boards[item] == board})
    return pools


def _by(right: Mapping[tuple[str, str], float], group: Mapping[tuple[str, str], str]) -> dict[str, float]:
    grouped: dict[str, list[float]] = defaultdict(list)
    for item, value in right.items():
        grouped[group[item]].append(value)
    return {name: 100 * mean(values) for name, values in sorted(grouped.items())}


def _rank(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    from scipy.stats import spearmanr

    common = sorted(set(left) & set(right))
    if min(len({side[name] for name in common}) for side in (left, right)) < _LEAST:
        return float("nan")  # nothing to rank
    return float(spearmanr([left[name] for name in common], [right[name] for name in common]).statistic)


def _verdicts(name: str, verdicts: Iterable[str]) -> None:
    counts = Counter(verdicts)
    total = sum(counts.values()) or 1
    print(f"{name}: " + ", ".join(f"{item} {counts[item]} ({100 * counts[item] / total:.0f}%)" for item in _VERDICTS))


def _score(key: Mapping[str, Any], viewers: Sequence[Mapping[str, Any]]) -> None:
    boards = {(board, name): board for board, kept in key.items() for name in kept["questions"]}
    kinds = {(board, name): kind for board, kept in key.items() for name, (kind, _) in kept["questions"].items()}
    judge = _shares(key, {board: kept["judge"] for board, kept in key.items()})
    seen = [
        _shares(key, {board: told["answers"] for board, told in viewer.items() if "answers" in told})
        for viewer in viewers
    ]
    together = {
        item: mean(one[item] for one in seen if item in one) for item in judge if any(item in one for one in seen)
    }
    print(f"{len(key)} boards, {len(judge)} questions, {len(viewers)} viewers")
    print(f"right: judge {100 * mean(judge.values()):.1f}, viewers {100 * mean(together.values()):.1f}")
    ours, theirs = _by(judge, kinds), _by(together, kinds)
    for kind, count in Counter(kinds.values()).most_common():
        print(f"  {kind} ({count}): judge {ours[kind]:.1f}, viewers {theirs[kind]:.1f}")
    print(f"rank correlation over boards: judge with viewers {_rank(_by(judge, boards), _by(together, boards)):.2f}")
    first, second = _two(seen, boards)
    if len({boards[item] for item in second}) > 2:
        print(f"  viewers with each other {_rank(_by(first, boards), _by(second, boards)):.2f}")
    _verdicts("frames", (item for viewer in viewers for told in viewer.values() for item in told.get("frames", ())))
    stories: dict[str, list[str]] = defaultdict(list)
    for board, told in ((board, told) for viewer in viewers for board, told in viewer.items() if "story" in told):
        stories[board].append(told["story"])
    _verdicts("this is that story", (item for values in stories.values() for item in values))
    share = {board: mean(_VERDICTS[item] for item in values) for board, values in stories.items()}
    if len(share) > 2:
        print(f"rank correlation of that share with the judge's score {_rank(share, _by(judge, boards)):.2f}")
    covered = [kept["coverage"] for kept in key.values() if kept.get("coverage")]
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
    score = verbs.add_parser("score", help="compare viewers with the judge")
    score.add_argument("viewers", nargs="+", type=Path)
    score.add_argument("--key", required=True, type=Path)
    told = parser.parse_args(arguments)
    if told.verb == "pack":
        if told.out.exists():
            sys.exit(f"{told.out} exists; name a new folder.")
        _pack(told.runs, told.out, told.key, told.seed)
    else:
        key = json.loads(told.key.read_text("utf-8"))
        _score(key, [json.loads(path.read_text("utf-8")) for path in told.viewers])


if __name__ == "__main__":
    main()
