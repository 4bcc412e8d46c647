"""The layout of a study, what its pages hold, and who counts: balance, order, checks, repeats, rules, signs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from raters import answer_file, attentive, hand_in
from study_material import STORIES, material, pack, recorded

from katha.errors import InputFileError, UsageError
from katha.eval_bridge.people.collected import participant, read_answer_files, to_judgments
from katha.eval_bridge.people.design import StudyPlan, needed
from katha.eval_bridge.people.study import Screen, StudyItem, StudyPage
from katha.experiments.people import PeopleOptions, read_study, score_people
from katha.jsonio import sha256_hex

ALL = ("questions", "rating", "pairs", "bridge", "scores")
EVERY = tuple(f"Q{number}" for number in range(1, 16))


def plan(**changes: object) -> StudyPlan:
    values = {
        "design": "between",
        "tasks": ALL,
        "people": 12,
        "per_item": 2,
        "criteria": EVERY,
        "checks": 2,
        "repeats": 2,
        "moral": True,
        "seed": 42,
    }
    return StudyPlan(**(values | changes))  # type: ignore[arg-type]


def cells(pages: list[StudyPage]) -> Counter[tuple[object, ...]]:
    """How often each thing is judged: by task, story, condition and boards, repeats left out."""
    return Counter(
        (screen.task, screen.story_id, screen.condition, frozenset((b.method, b.part) for b in screen.boards))
        for page in pages
        for screen in page.screens
        if any(item.repeats is None and item.expected is None for item in screen.items)
    )


def test_everything_is_judged_as_often_and_nobody_meets_a_story_twice() -> None:
    pages, notes = plan().pages(material())
    assert needed(material()) == 6
    counted = cells(pages)
    assert set(counted.values()) == {2}
    assert [note for note in notes if "judgments" in note] == []
    assert len(counted) == len(STORIES) * (6 + 2 + 1 + 1 + 2)
    for page in pages:
        asked = Counter(s.story_id for s in page.screens if s.task == "questions" and len(s.items) > 2)
        assert max(asked.values(), default=1) == 1
        read = {s.story_id for s in page.screens if s.task == "questions" and "text" in s.condition}
        judged = {s.story_id for s in page.screens if s.task != "questions" and s.condition == "image"}
        assert not read & judged
    loads = [len(page.screens) for page in pages]
    assert max(loads) - min(loads) <= 5


def test_within_everybody_goes_from_nothing_to_pictures_to_text() -> None:
    pages, _ = plan(design="within", people=2).pages(material())
    for page in pages:
        kinds = [(s.task, s.condition) for s in page.screens]
        order = ["none", "image", "text", "text+image"]
        asked = [order.index(condition) for task, condition in kinds if task == "questions"]
        assert asked == sorted(asked)
        last_image = max(at for at, (_, condition) in enumerate(kinds) if condition == "image")
        first_text = min(at for at, (_, condition) in enumerate(kinds) if "text" in condition)
        assert last_image < first_text
        last_guess = max(at for at, (_, condition) in enumerate(kinds) if condition == "none")
        assert last_guess < min(at for at, (_, condition) in enumerate(kinds) if condition == "image")
        for story in STORIES:
            own = [s for s in page.screens if s.task == "questions" and s.story_id == story and len(s.items) > 2]
            assert sorted(s.condition for s in own) == ["image", "none", "text", "text+image"]
            assert len({s.boards for s in own if s.boards}) == 1
    assert len(cells(pages)) == len(STORIES) * (6 + 2 + 1 + 1 + 2)


def test_who_guesses_sees_nothing_and_may_not_pass() -> None:
    guessed = 0
    for design, people in (("between", 12), ("within", 2)):
        pages, _ = plan(design=design, people=people, repeats=20).pages(material())
        for page in pages:
            for screen, item in page.items():
                assert screen.condition != "none" or (screen.task == "questions" and not screen.boards)
                if item.kind == "choice":
                    assert ("Unclear" in item.options) == (screen.condition != "none")
                    guessed += screen.condition == "none" and item.repeats is not None
                assert item.kind != "ranking" or screen.condition == "image"
    assert guessed


def test_a_study_without_guesses_is_laid_out_as_before(tmp_path: Path) -> None:
    """The hash is of the pages that were made before anything was asked without evidence."""
    before = replace(material(), guesses=False)
    assert needed(before) == 5
    pages, notes = plan(people=10).pages(before)
    told = json.dumps([[page.model_dump_json() for page in pages], notes])
    assert sha256_hex(told.encode()) == "079c304f1507e46e3b34044a64726c586b0b89781af529450716f6c714c5b4df"
    made = pack(tmp_path, raters=5, per_item=1, no_guesses=True)
    study, _ = read_study(made.out)
    assert not study.guesses
    old = json.loads((made.out / "study.json").read_text())
    del old["guesses"]
    (made.out / "study.json").write_text(json.dumps(old))
    paths = hand_in(tmp_path / "back", study, [attentive(steady)] * 5)
    scored = score_people(paths, PeopleOptions(study=made.out)).scores.model_dump_json()
    assert '"none"' not in scored
    assert "gain" not in scored


def test_order_sides_and_options_are_random_by_seed() -> None:
    first, again, other = (plan(people=30, per_item=6, seed=seed).pages(material())[0] for seed in (42, 42, 43))
    assert first == again != other
    sides = Counter(
        screen.boards[0] == screen.favoured for page in first for screen in page.screens if screen.favoured is not None
    )
    assert 0.3 < sides[True] / sides.total() < 0.7
    places = Counter(
        item.options.index("gold")
        for page in first
        for _, item in page.items()
        if item.kind == "choice" and item.question_id
    )
    assert set(places) == {0, 1, 2, 3}
    choices = [(screen, item) for page in first for screen, item in page.items() if item.kind == "choice"]
    assert all(item.options[-1] == "Unclear" for screen, item in choices if screen.condition != "none")


def test_checks_and_repeats_are_hidden_among_the_others() -> None:
    few, notes = plan(people=40).pages(material())
    assert any("too little for all attention checks and repeated items" in note for note in notes)
    assert len(few) == 40
    pages, notes = plan(design="within", people=2).pages(material())
    assert not any("too little" in note for note in notes)
    for page in pages:
        items = dict.fromkeys(item.item for _, item in page.items())
        assert len(items) == sum(1 for _ in page.items())
        checks = [item for _, item in page.items() if item.expected is not None]
        assert len(checks) == 2
        assert all(item.expected in item.options and item.expected in item.text for item in checks)
        by_id = {item.item: (screen, item) for screen, item in page.items()}
        repeated = [(screen, item) for screen, item in page.items() if item.repeats is not None]
        assert len(repeated) == 2
        for screen, item in repeated:
            before, asked = by_id[item.repeats or ""]
            assert (item.text, sorted(item.options)) == (asked.text, sorted(asked.options))
            assert screen.boards == (before.boards[::-1] if item.kind == "preference" else before.boards)


def test_only_what_can_be_asked_is_asked() -> None:
    pages, _ = plan(criteria=("Q1", "Q14", "Q15"), moral=False).pages(material())
    asked = {(screen.task, item.criterion) for page in pages for screen, item in page.items() if item.criterion}
    named = {(task, name) for task, name in asked if name and name.startswith("Q")}
    assert named == {
        *(("rating", name) for name in ("Q1", "Q14")),
        *(("pairs", name) for name in ("Q1", "Q15")),
        *(("bridge", name) for name in ("Q1", "Q14", "Q15")),
    }
    for page in pages:
        for screen, item in page.items():
            assert item.kind != "ranking"
            if item.criterion == "Q14" and screen.task == "rating":
                assert screen.boards[0].method == "fixed"


# Pages: nothing is in them that should not be.


def data_of(page: Path) -> dict[str, object]:
    text = page.read_text(encoding="utf-8")
    start = text.index('id="study">') + len('id="study">')
    found: dict[str, object] = json.loads(text[start : text.index("</script>", start)])
    return found


def test_a_page_names_no_method_no_key_and_no_text_of_pictures(tmp_path: Path) -> None:
    made = pack(tmp_path, raters=6, per_item=1)
    study, records = read_study(made.out)
    for page, path in zip(study.pages, made.pages, strict=True):
        text = path.read_text(encoding="utf-8")
        data = data_of(path)
        for secret in (
            "plain",
            "fixed",
            "SECRET",
            "accepted",
            "criterion",
            "expected",
            "repeats",
            "question_id",
            "Q15",
        ):
            assert secret not in text.split('id="study">')[1].split("</script>")[0], secret
        assert "http" not in text.replace("http-equiv", "")
        shown = {s.story_id for s in page.screens if "text" in s.condition}
        screens = data["screens"]
        assert isinstance(screens, list)
        told = {str(screen["text"]) for screen in screens} - {""}
        blind = [s for s, asked in zip(screens, page.screens, strict=True) if asked.condition == "none"]
        assert all("best guess" in s["told"] and not s["text"] and not s["boards"] for s in blind)
        assert told == {record.story_text for record in records if record.story_id in shown}
        assert "<b>alone" not in text
        assert [len(s["boards"]) for s in screens] == [len(s.boards) for s in page.screens]
    assert "fixed" in study.model_dump_json()


def test_the_folder_is_made_once_and_another_study_is_refused(tmp_path: Path) -> None:
    made = pack(tmp_path, raters=6, per_item=1)
    before = {path: path.read_bytes() for path in made.pages}
    assert pack(tmp_path, raters=6, per_item=1).reused
    made.pages[0].unlink()
    assert not pack(tmp_path, raters=6, per_item=1).reused
    assert {path: path.read_bytes() for path in made.pages} == before
    with pytest.raises(UsageError, match="holds a katha study with people with other stories, boards or settings"):
        pack(tmp_path, raters=7, per_item=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"raters": 4}, "4 people cannot be asked .* 6 are needed"),
        ({"tasks": "questions,taste"}, "'taste' is not known"),
        ({"criteria": "Q1,Q99"}, "'Q99' is not known"),
        ({"groups": "a,a"}, "give each name once"),
        ({"consent": Path("nothing.txt")}, "cannot be read as UTF-8"),
        ({"raters": 5, "tasks": "bridge", "methods": ("plain",)}, "no board holds an inserted frame"),
        ({"raters": 5, "tasks": "pairs", "methods": ("plain",)}, "not two methods"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_written(
    tmp_path: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        pack(tmp_path, **options)
    assert not (tmp_path / "study").exists()


# Files that come back.


def steady(screen: Screen, item: StudyItem) -> int | list[str]:
    """Somebody who knows what is right, likes the repaired board, and says the same twice."""
    if item.kind == "ranking":
        return ["honesty", "courage"]
    if item.kind == "choice":
        return item.options.index("gold" if "gold" in item.options else "Unclear")
    if item.kind == "preference":
        return 0 if screen.boards[0] == screen.favoured else 4
    return 3


def test_answers_become_judgments_with_the_right_signs(tmp_path: Path) -> None:
    made = pack(tmp_path, raters=6, per_item=1)
    study, records = read_study(made.out)
    paths = hand_in(tmp_path / "back", study, [attentive(steady)] * 6)
    collected, notes = read_answer_files(paths, study)
    assert notes == []
    assert all(participant(one, study).excluded == [] for one in collected)
    rows = to_judgments(collected, records, recorded())
    preferred = [row for row in rows if "preference" in row]
    assert {row["preference"] for row in preferred} == {2}
    about = {(row["task"], row["method"], row["against"]) for row in preferred}
    assert about == {("pairs", "fixed", "plain"), ("bridge", "fixed", "fixed without its bridge")}
    asked = [row for row in rows if "right" in row]
    assert asked
    assert all(row["right"] and row["answer"] == "gold" for row in asked)
    assert {row["label"] for row in asked} == {"option 1"}  # whatever the order in which they were shown
    assert all(("method" in row) == ("image" in row["condition"]) for row in asked)
    assert {row["condition"] for row in asked} == {"none", "text", "image", "text+image"}
    assert {row["target"] for row in rows if "top1" in row} == {"courage"}
    assert {row["rating"] for row in rows if "rating" in row} == {4}
    items = sum(1 for page in study.pages for _ in page.items())
    extra = sum(item.expected is not None or item.repeats is not None for p in study.pages for _, item in p.items())
    assert len(rows) == items - extra


def test_those_who_do_not_attend_are_left_out_and_named(tmp_path: Path) -> None:
    made = pack(tmp_path, raters=5, per_item=5, design="within", tasks="questions")
    study, _ = read_study(made.out)

    def fickle(screen: Screen, item: StudyItem) -> int | list[str]:
        turned = steady(screen, item)
        return turned if item.repeats is None or isinstance(turned, list) else (turned + 2) % 4

    def careless(screen: Screen, item: StudyItem) -> int | list[str]:
        wrong = [place for place, option in enumerate(item.options) if option != item.expected]
        return steady(screen, item) if item.expected is None else wrong[0]

    folder = tmp_path / "back"
    hand_in(folder, study, [attentive(steady), careless, attentive(fickle)])
    (folder / "hasty.json").write_text(
        answer_file(study, study.pages[3], attentive(steady), rater="hasty", ms=300), encoding="utf-8"
    )
    short = json.loads(answer_file(study, study.pages[4], attentive(steady), rater="short"))
    short["answers"] = short["answers"][:3]
    (folder / "short.json").write_text(json.dumps(short))
    scored = score_people([folder], PeopleOptions(study=made.out))
    people = {who.rater: who for who in scored.scores.participants}
    assert people["r0"].excluded == []
    assert people["r1"].excluded == ["failed 2 of 2 attention checks"]
    assert people["hasty"].excluded == ["took 0.3 seconds an item (median), less than 1.5"]
    assert people["short"].excluded[0].startswith("answered 3 of ")
    assert people["r2"].excluded == ["answered 2 of 2 repeated items otherwise"]
    assert {row["rater"] for row in scored.rows} == {name for name, who in people.items() if not who.excluded}
    assert any("participants are left out: " in note for note in scored.scores.notes)
    everybody = score_people([folder], PeopleOptions(study=made.out, everybody=True))
    assert {row["rater"] for row in everybody.rows} == set(people)


def test_where_nobody_counts_it_says_why(tmp_path: Path) -> None:
    made = pack(tmp_path, raters=6, per_item=1)
    study, _ = read_study(made.out)
    paths = hand_in(tmp_path / "back", study, [attentive(steady)], ms=100)
    with pytest.raises(UsageError, match=r"1 of 1 participants are left out: r0 \(took 0\.1 seconds an item"):
        score_people(paths, PeopleOptions(study=made.out))


def test_of_two_files_of_one_participant_the_later_counts(tmp_path: Path) -> None:
    made = pack(tmp_path, raters=6, per_item=1)
    study, _ = read_study(made.out)
    (path,) = hand_in(tmp_path / "back", study, [attentive(steady)])
    later = json.loads(path.read_text()) | {"saved": "2026-01-01T11:00:00.000Z"}
    (tmp_path / "back" / "a_later.json").write_text(json.dumps(later))
    collected, notes = read_answer_files([tmp_path / "back"], study)
    assert [one.path.name for one in collected] == ["a_later.json"]
    assert notes == ["r0.json is of the same participant as a_later.json, which was saved later and counts."]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"study": "000000000000"}, "is of the study '000000000000'"),
        ({"page": "rater-99"}, "which the study has not"),
        ({"answers": [{"item": "i0001", "value": "nonsense", "ms": 1}]}, "is none that its page offers"),
        ({"answers": [{"item": "x", "value": "gold", "ms": 1}]}, "is none that its page offers"),
        ({"format": 2}, "is not a file of answers: field 'format'"),
        ({"rater": None}, "field 'rater'"),
    ],
)
def test_files_that_are_none_are_refused(tmp_path: Path, change: dict[str, object], message: str) -> None:
    made = pack(tmp_path, raters=6, per_item=1)
    study, _ = read_study(made.out)
    (path,) = hand_in(tmp_path / "back", study, [attentive(steady)])
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputFileError, match=message):
        score_people([path], PeopleOptions(study=made.out))
