"""Packets, prompts, asking, the answer log, recorded and scripted judges."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest
from doubles import KeptAnswers
from PIL import Image, PngImagePlugin

from katha.errors import InputFileError, JudgeError, RecordError, TransientJudgeError, UsageError
from katha.eval_bridge.judges.recorded import RecordedJudge
from katha.eval_bridge.judging.abilities import judge_name
from katha.eval_bridge.judging.answers import AnswerLog, read_answers
from katha.eval_bridge.judging.engine import Inquiry, JudgingEngine, Retry
from katha.eval_bridge.packets.instructions import judge_prompt, reply_schema, together_sha256, together_text
from katha.eval_bridge.packets.packets import clean_image, make_packet, scan_packet
from katha.protocols import Evidence, JudgeReply
from katha.schema import Answer, Packet, Question
from katha.testing import ScriptedJudge

STORY = "The mouse bites the net and the lion is free."
AT_ONCE = Retry(attempts=3, first_wait=0.0)


def picture(colour: str = "red", mode: str = "RGB", form: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (24, 16), colour).convert(mode).save(buffer, form, **options)
    return buffer.getvalue()


def question(name: str = "q1", **changes: object) -> Question:
    values: dict[str, object] = {
        "question_id": name,
        "story_id": "s",
        "question_type": "causal",
        "question": f"Why is the lion free ({name})?",
        "gold_answer": "The mouse bites the net",
        "options": ["The mouse bites the net", "The lion sleeps", "The net is old", "It rains", "Unclear"],
        "role": "reporting",
    }
    return Question.model_validate(values | changes)


def put(
    judge: ScriptedJudge | RecordedJudge,
    questions: list[Question],
    cache: KeptAnswers | None = None,
    **options: object,
) -> list[Answer]:
    condition = options.pop("condition", "image")
    packet, evidence = make_packet("s", condition, [picture()], STORY)  # type: ignore[arg-type]
    name, told = judge_name(judge), options.pop("on_answer", None)
    values: dict[str, object] = {"method": "base", "variant": "neutral", "answers": "choice"}
    engine = JudgingEngine({name: judge}, cache, retry=AT_ONCE)
    return engine.ask(name, Inquiry(packet, evidence, questions, **(values | options)), told)  # type: ignore[arg-type]


def test_a_packet_holds_what_its_condition_allows() -> None:
    packet, evidence = make_packet("s", "image", [picture()], STORY)
    assert (packet.text, evidence.text, len(evidence.images)) == (None, None, 1)
    packet, evidence = make_packet("s", "text", [picture()], STORY)
    assert (packet.images, evidence.images, evidence.text) == ((), (), STORY)
    with pytest.raises(RecordError, match="at least one picture"):
        make_packet("s", "text+image", [], STORY)
    with pytest.raises(RecordError, match="text"):
        make_packet("s", "text+image", [picture()], " ")


def test_metadata_does_not_survive_and_does_not_change_the_hash() -> None:
    notes = PngImagePlugin.PngInfo()
    notes.add_text("prompt", STORY)
    marked = clean_image(picture(pnginfo=notes))
    assert STORY.encode() not in marked.png
    assert marked == clean_image(picture())
    assert clean_image(picture("blue")).sha256 != marked.sha256


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (5, 1), (31, 17)])
def test_the_clean_picture_has_the_very_pixels_and_nothing_else(size: tuple[int, int]) -> None:
    noise = random.Random(7).randbytes(3 * size[0] * size[1])
    buffer = io.BytesIO()
    Image.frombytes("RGB", size, noise).save(buffer, "PNG")
    found = clean_image(buffer.getvalue())
    assert (found.width, found.height) == size
    with Image.open(io.BytesIO(found.png)) as image:
        image.verify()
    with Image.open(io.BytesIO(found.png)) as image:
        assert (image.mode, image.size, image.tobytes(), image.info) == ("RGB", size, noise, {})
    packet, evidence = make_packet("s", "image", [buffer.getvalue()])
    report = scan_packet(packet, evidence)
    assert (report.clean, report.chunks) == (True, 3)


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "LA", "1", "I;16"])
def test_every_png_mode_becomes_rgb(mode: str) -> None:
    with Image.open(io.BytesIO(clean_image(picture("white", mode)).png)) as image:
        assert image.mode == "RGB"
        assert image.getpixel((3, 3)) == (255, 255, 255) or mode == "I;16"


def test_transparency_is_laid_on_white_and_orientation_applied() -> None:
    buffer = io.BytesIO()
    Image.new("RGBA", (4, 2), (0, 0, 0, 0)).save(buffer, "PNG")
    with Image.open(io.BytesIO(clean_image(buffer.getvalue()).png)) as image:
        assert image.getpixel((0, 0)) == (255, 255, 255)
    exif = Image.Exif()
    exif[274] = 6
    turned = clean_image(picture(form="JPEG", exif=exif))
    assert (turned.width, turned.height) == (16, 24)
    assert clean_image(picture(mode="CMYK", form="JPEG")).width == 24


def test_16_bit_grey_keeps_its_shades() -> None:
    buffer = io.BytesIO()
    Image.new("I;16", (2, 2), 32896).save(buffer, "PNG")
    with Image.open(io.BytesIO(clean_image(buffer.getvalue()).png)) as image:
        assert image.getpixel((0, 0)) == (128, 128, 128)


def test_pictures_that_cannot_be_used_are_named() -> None:
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    huge = io.BytesIO()
    Image.new("1", (8000, 5001)).save(huge, "PNG")
    cases = {
        "empty": b"",
        "not a picture": b"hello",
        "damaged": picture()[:60],
        "animated": buffer.getvalue(),
        "40,000,000": huge.getvalue(),
    }
    for words, data in cases.items():
        with pytest.raises(InputFileError, match=f"Picture 2.*{words}"):
            make_packet("s", "image", [picture(), data], None)


def test_the_guard_finds_text_and_metadata() -> None:
    packet, evidence = make_packet("s", "image", [picture()], STORY)
    report = scan_packet(packet, evidence, [STORY])
    assert report.clean
    assert report.chunks == 3
    notes = PngImagePlugin.PngInfo()
    notes.add_text("caption", STORY)
    raw = Evidence("image", (picture(pnginfo=notes),))
    assert any("source text" in item for item in scan_packet(packet, raw, [STORY]).found)
    assert scan_packet(packet, Evidence("image", (evidence.images[0] + b"tail",)), []).found
    leaking = packet.model_copy(update={"text": STORY})
    with pytest.raises(RecordError, match="leaks"):
        scan_packet(leaking, evidence, []).require("s")
    extra = Packet.model_validate({"story_id": "s", "condition": "image", "caption": "a mouse"})
    assert "caption" in scan_packet(extra, Evidence("image"), []).found[0]


def test_prompts_differ_by_condition_dimension_and_variant_and_hold_no_answer() -> None:
    seen = set()
    for condition in ("text", "image", "text+image"):
        for variant in ("neutral", "strict", "uncertain"):
            for dimension in ("causal", "moral"):
                item = question(question_type=dimension)
                prompt = judge_prompt(item, condition, variant=variant, answers_format="free", count=5)  # type: ignore[arg-type]
                seen.add(prompt.instruction)
                assert item.gold_answer not in prompt.instruction
    assert len(seen) == 18
    with pytest.raises(UsageError, match="variant"):
        judge_prompt(question(), "text", variant="kind", answers_format="free")
    with pytest.raises(UsageError, match="no options"):
        judge_prompt(question(options=None), "text", variant="neutral", answers_format="choice")


def test_reply_schemas_are_those_of_the_protocol() -> None:
    assert list(reply_schema("image", None)["properties"]) == ["answer", "evidence_status", "confidence"]
    assert list(reply_schema("image", ("a", "b"))["properties"]) == ["answer", "confidence"]
    both = reply_schema("text+image", ("a", "b"))
    assert list(both["properties"]) == ["source_answer", "image_support", "final_answer", "confidence"]
    assert both["properties"]["final_answer"]["enum"] == ["a", "b"]


def test_without_evidence_nothing_is_shown_and_unclear_is_no_option() -> None:
    packet, evidence = make_packet("s", "none", [picture()], STORY)
    assert (packet.images, packet.text, evidence.images, evidence.text) == ((), None, (), None)
    chosen = judge_prompt(question(), "none", variant="strict", answers_format="choice")
    assert chosen.options == ("The mouse bites the net", "The lion sleeps", "The net is old", "It rains")
    free = judge_prompt(question(), "none", variant="strict", answers_format="free")
    assert list(free.schema["properties"]) == ["answer", "confidence"]
    assert "best guess" in free.instruction
    leaked = packet.model_copy(update={"text": STORY})
    assert not scan_packet(leaked, evidence).clean


def test_without_evidence_several_questions_have_a_prompt_of_their_own() -> None:
    told = {}
    for condition in ("none", "image"):
        prompts = [
            judge_prompt(question(name), condition, variant="strict", answers_format="free")  # type: ignore[arg-type]
            for name in ("q1", "q2")
        ]
        told[condition] = together_text(prompts)[1], together_sha256(prompts)
    assert "is right wherever" in told["image"][0]
    assert "Unclear" not in told["none"][0]
    assert not set(told["none"][1]) & set(told["image"][1])


def test_a_judge_that_gives_no_guess_is_counted_and_not_guessed_for() -> None:
    cache = KeptAnswers()
    script = ["Unclear", JudgeReply("refused", error="no"), "a net", "ambiguous."]
    rows = put(
        ScriptedJudge(script),
        [question(f"q{at}") for at in range(4)],
        cache,
        condition="none",
        method=None,
        answers="free",
    )
    assert [row.status for row in rows] == ["refused", "refused", "ok", "refused"]
    assert [row.answer for row in rows] == [None, None, "a net", None]
    assert "gave none" in str(rows[0].error)
    assert len(cache) == 1


def test_an_answer_is_paid_once_for_all_methods() -> None:
    cache, told = KeptAnswers(), []
    judge = ScriptedJudge(["The lion sleeps"])
    first = put(judge, [question()], cache, condition="text", method=None)
    again = put(
        judge, [question()], cache, condition="text", method="full", on_answer=lambda row, reused: told.append(reused)
    )
    assert (first[0].answer, again[0].answer, again[0].method) == ("The lion sleeps", "The lion sleeps", "full")
    assert told == [True]
    assert len(judge.asked) == 1


def test_the_key_holds_judge_picture_prompt_and_condition() -> None:
    cache = KeptAnswers()
    put(ScriptedJudge(["It rains"]), [question()], cache)
    for judge, options in (
        (ScriptedJudge(["It rains"], revision="2"), {}),
        (ScriptedJudge(["It rains"]), {"variant": "strict"}),
        (ScriptedJudge(["It rains"]), {"condition": "text+image"}),
    ):
        put(judge, [question()], cache, **options)
        assert len(judge.asked) == 1
    assert len(cache) == 4


def test_failures_are_typed_never_cached_and_never_answers() -> None:
    cache = KeptAnswers()
    script = [JudgeReply("refused", answer="no"), "a purple cow", JudgeReply("ok"), "the lion sleeps."]
    rows = put(ScriptedJudge(script), [question(f"q{at}") for at in range(4)], cache)
    assert [row.status for row in rows] == ["refused", "unparseable", "unparseable", "ok"]
    assert [row.answer for row in rows] == [None, None, None, "The lion sleeps"]
    assert [row.answer for row in cache.values()] == ["The lion sleeps"]


def test_transient_failures_are_tried_again_with_the_same_bytes() -> None:
    judge = ScriptedJudge(["It rains", TransientJudgeError("busy"), "The lion sleeps"])
    rows = put(judge, [question("q1"), question("q2")])
    assert [row.answer for row in rows] == ["It rains", "The lion sleeps"]
    assert judge.asked[1] == judge.asked[2]
    judge = ScriptedJudge([TransientJudgeError("busy")] * 3)
    rows = put(judge, [question("q1"), question("q2")])
    assert [row.status for row in rows] == ["transport_failed"] * 2
    assert len(judge.asked) == 3


def test_what_was_answered_before_a_crash_was_handed_over() -> None:
    told: list[str] = []
    with pytest.raises(JudgeError, match="no answer left"):
        put(
            ScriptedJudge(["It rains"]),
            [question("q1"), question("q2")],
            on_answer=lambda row, reused: told.append(row.question_id),
        )
    assert told == ["q1"]


def test_the_log_survives_a_torn_line_and_the_last_line_wins(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    rows = put(ScriptedJudge(["It rains", "The lion sleeps"]), [question("q1"), question("q2")])
    with AnswerLog(path) as log:
        for row in rows:
            log.append(row)
    with path.open("ab") as file:
        file.write(b'{"method": "base", "judge')
    assert read_answers(path) == rows
    changed = rows[0].model_copy(update={"answer": "The net is old"})
    with AnswerLog(path) as log:
        log.append(changed)
    assert read_answers(path) == [changed, rows[1]]
    path.write_bytes(b"{}\n" + path.read_bytes())
    with pytest.raises(InputFileError, match="line 1"):
        read_answers(path)


def test_recorded_answers_are_replayed_and_the_rest_is_not_asked(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    rows = put(ScriptedJudge(["It rains"]), [question("q1")])
    with AnswerLog(path) as log:
        log.append(rows[0])
    replay = put(RecordedJudge(str(path)), [question("q1"), question("q2")])
    assert (replay[0].answer, replay[0].judge) == ("It rains", "scripted")
    assert (replay[1].status, replay[1].answer) == ("not_asked", None)
    with AnswerLog(path) as log:
        log.append(rows[0].model_copy(update={"judge": "other"}))
    with pytest.raises(UsageError, match="other, scripted"):
        RecordedJudge(str(path))
    assert put(RecordedJudge(f"{path}#other"), [question("q1")])[0].judge == "other"
    with pytest.raises(UsageError, match="archive"):
        RecordedJudge()
