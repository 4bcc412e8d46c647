"""What people have, by kind: read right, or named in a sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from katha.errors import InputFileError, KathaError
from katha.intake import noted
from katha.schema import StoryRecord
from katha.stories import load_stories, load_story, story_of_text

FILES = Path(__file__).parent / "files"


def read(name: str) -> StoryRecord:
    return load_story(str(FILES / name))


def cast(record: StoryRecord) -> list[str]:
    return [one.name for one in record.structure.cast] if record.structure is not None else []


def places(record: StoryRecord) -> list[tuple[str, str]]:
    assert record.structure is not None
    return [(one.place, one.time_of_day) for one in record.structure.scenes]


def said(record: StoryRecord) -> str:
    return " ".join(noted(record))


def test_fountain_gives_scenes_cast_and_words() -> None:
    record = read("well.fountain")
    assert record.title == "The Well"
    assert cast(record) == ["Lina", "DeMarco"]
    assert places(record) == [("village well", "morning"), ("hut", ""), ("roof", "")]
    assert record.structure is not None
    assert [one.number for one in record.structure.scenes] == ["1-AB", "2A", ""]
    assert record.structure.scenes[0].outdoors
    told = record.story_text
    assert 'Lina said, "So heavy."' in told
    assert "Every morning she came to the well." in told.split("\n\n")
    assert 'The old man said, "Need help?"' in told
    assert 'DeMarco whispered, "What a view."' in told
    assert 'Lina sang, "La la la"' in told.replace('la."', 'la"')
    for lost in ("Ann Lee", "Act Two", "learns to share", "CUT TO", "a note", "this is cut", "THE END", "#"):
        assert lost not in told
    for named in ("credit", "Act Two", "learns to share", "FADE IN"):
        assert named in said(record)


def test_final_draft_joins_the_runs_of_a_paragraph_and_reads_two_who_speak_at_once() -> None:
    record = read("barn.fdx")
    assert (record.title, cast(record)) == ("Two Hens", ["Nora", "Walter"])
    assert places(record) == [("barn", "night")]
    assert record.story_text.split("\n\n") == [
        "Nora holds a key & a rope.",
        'Nora said, "Give it back!"',
        'Walter said, "Never!"',
    ]


def test_a_damaged_final_draft_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "x.fdx"
    path.write_text("<FinalDraft><Content><Paragraph>", "utf-8")
    with pytest.raises(InputFileError, match="not a whole Final Draft document"):
        load_story(str(path))
    path.write_text('<!DOCTYPE a [<!ENTITY b "c">]><FinalDraft><Content>&b;</Content></FinalDraft>', "utf-8")
    assert "c" not in cast_or_refusal(path)


def cast_or_refusal(path: Path) -> list[str]:
    try:
        return cast(load_story(str(path)))
    except KathaError:
        return []


@pytest.mark.parametrize(
    ("text", "names", "words"),
    [
        (
            "MARA\n(angry)\nGive me the map.\n\nJON\nNever!\n\nJon throws the map away.\n",
            ["Mara", "Jon"],
            'Jon said, "Never!"',
        ),
        ("ÉLISE opens the door.\n\nÉLISE\nHello!\n\nRENÉ\nHello, Élise.\n", ["Élise", "René"], 'Élise said, "Hello!"'),
        (
            "SAMPSON. Come here!\nGREGORY. I am coming.\n\nGregory runs.",
            ["Sampson", "Gregory"],
            'Sampson said, "Come here!"',
        ),
        (
            "EXT. GYM - DAY\nJohn: (dribbling the ball) Score!\nJane:(The shot misses.) Oh!",
            ["John", "Jane"],
            "John is dribbling the ball.",
        ),
        ("INT. A - DAY\n\nTHE OLD MAN\nHi.\n\nA DEALER shuffles.\n\nDEALER\nCards?\n", [], 'The dealer said, "Cards?"'),
        (
            "INT. A - DAY\n\nHe waits.\n\nMIA & TOM\nHi there.\n\nVARIOUS SHOTS\nof cars.\n",
            ["Mia", "Tom"],
            'Mia and Tom said, "Hi there."',
        ),
    ],
)
def test_scripts_without_headings_or_gaps_have_their_speakers(text: str, names: list[str], words: str) -> None:
    record = story_of_text(text, "s")
    assert sorted(cast(record)) == sorted(names)
    assert words in record.story_text


def test_a_comics_script_has_a_shot_a_panel() -> None:
    record = read("bus.txt")
    assert (record.title, cast(record)) == ("THE LAST BUS", ["Mara"])
    assert [one.characters for one in record.scenes] == [["Mara"], [], ["Mara"]]
    assert record.scenes[1].scene_text.startswith('The driver opens the door. Midnight. The driver said, "Last bus."')
    assert "HISS" in said(record)
    assert "Jo Writer" in said(record)


@pytest.mark.parametrize(
    ("text", "shots"),
    [
        (
            "| Shot | Size | Who | Action |\n|--|--|--|--|\n| 1 | WS | Ana | Climbs the stairs |\n| 2 | CU "
            "| | A cat runs |\n",
            ["Ana climbs the stairs.", "A cat runs."],
        ),
        ("Shot\tAngle\tDescription\n1A\tWide\tA boy runs\n1B\tClose\tHe trips\n", ["A boy runs.", "He trips."]),
        ("shot;who;what happens;where\n1;Lea;Lea rides;stable\n2;Jan;Jan waves;field\n", ["Lea rides.", "Jan waves."]),
        ("Shot 1 - WS - A girl enters.\nShot 2 - CU - She reads.\n", ["A girl enters.", "She reads."]),
        (
            "SHOT 1\nVisual: A rocket stands.\nAudio: Roar.\nSHOT 2\nVisual: A girl waves.\nAudio: Music.\n",
            ["A rocket stands.", "A girl waves."],
        ),
        (
            "Sure! Here is your storyboard:\n\n**Panel 1:** A dog sleeps.\n\n**Panel 2:** It wakes.\n\nLet "
            "me know if you like it!",
            ["A dog sleeps.", "It wakes."],
        ),
        (
            '--subject "a cute dog" --settings "sitting on a bench" "running" --style "photo"',
            ["A cute dog is sitting on a bench.", "The cute dog is running."],
        ),
        (
            "[Mika] a girl with a hat\n[Mika] walk in the forest #Hi\n[NC]the sun sets\n",
            ["Mika walks in the forest.", "The sun sets."],
        ),
        (
            "a man, wearing a suit\nwake up in the bed\n[NC]A dog barks\n",
            ["The man wake up in the bed.", "A dog barks."],
        ),
    ],
)
def test_shot_lists_and_prompt_lists_have_a_panel_a_row(text: str, shots: list[str]) -> None:
    record = story_of_text(text, "s")
    assert [one.scene_text for one in record.scenes] == shots
    assert not set("|[]#") & set("".join([*cast(record), record.story_text]))


def test_labelled_blocks_are_scenes_with_place_time_and_cast() -> None:
    text = (
        "**Title:** The Kite\n**Genre:** Fable\n\n**Scene 1**\n**Setting:** A windy hill, morning\n"
        "**Characters:** Sam (8, red coat), "
        'Grandpa\n**Action:** Sam flies a kite.\n**Dialogue:** Sam: "Oh no!"\n\n**Scene 2**\n'
        "**Setting:** A forest, evening\n"
        "**Characters:** none\n**Action:** The kite hangs in a tree.\n"
    )
    record = story_of_text(text, "s")
    assert (record.title, cast(record)) == ("The Kite", ["Sam", "Grandpa"])
    assert places(record) == [("windy hill", "morning"), ("forest", "evening")]
    assert record.story_text.split("\n\n") == ['Sam flies a kite. Sam said, "Oh no!"', "The kite hangs in a tree."]
    assert "Genre" in said(record)


@pytest.mark.parametrize(
    ("text", "title", "words"),
    [
        (
            "The Keeper\n\n1. Opening Image: Pia lives alone.\n2. Finale - Pia waves.\n",
            "The Keeper",
            ["Pia lives alone.", "Pia waves."],
        ),
        (
            "I. The kitchen\n   A. Mia packs\n   B. Grandma cries\nII. The station\n   A. Mia waves\n",
            "S",
            ["Mia packs.", "Grandma cries.", "Mia waves."],
        ),
        ("A. A boy enters.\nB. Bats fly out.\n", "S", ["A boy enters.", "Bats fly out."]),
        ("Step 1: Lina draws a door.\nStep 2: It opens.\n", "S", ["Lina draws a door.", "It opens."]),
    ],
)
def test_outlines_and_beats_are_told_without_their_marks(text: str, title: str, words: list[str]) -> None:
    record = story_of_text(text, "s")
    assert (record.title, record.story_text.split("\n\n")) == (title, words)


@pytest.mark.parametrize(
    ("name", "text", "title", "words"),
    [
        (
            "a.md",
            "---\ntitle: Pond\n---\n# Pond\n\n*A frog* sat on a [stone](http://x).\n\n## Later\n\nIt jumped.\n",
            "Pond",
            "A frog sat on a stone.\n\nIt jumped.",
        ),
        (
            "a.html",
            "<html><head><title>Site</title></head><body><nav>Home</nav><h1>Ring</h1><p>A goose &amp; a "
            "hen ran.</p></body>",
            "Ring",
            "A goose and a hen ran.",
        ),
        (
            "a.tex",
            "\\documentclass{a}\\title{The \\emph{Goat}}\\author{X}\\begin{document}\\section{Hill}\nA "
            "goat---old---``sang''. % no\n"
            "\\end{document}",
            "The Goat",
            "A goat\u2014old\u2014\u201csang\u201d.",
        ),
        (
            "a.srt",
            "1\n00:00:01,000 --> 00:00:02,000\n<i>Nora climbs</i>\n\n2\n00:00:02,000 --> 00:00:03,000\nthe "
            "ladder. [thud]\n",
            "A",
            "Nora climbs the ladder.",
        ),
        (
            "a.vtt",
            "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Anna>Where is my hat?\n",
            "A",
            'Anna said, "Where is my hat?"',
        ),
        (
            "a.twee",
            ":: StoryTitle\nCave\n\n:: Start\nYou enter. (set: $x to 1)\n[[Go->In]]\n[[Home]]\n\n:: In\nA "
            "troll sleeps.\n\n:: Home\nBye.\n",
            "Cave",
            "You enter.\n\nA troll sleeps.",
        ),
        (
            "b.txt",
            "The Project Gutenberg eBook of Hen\n\nTitle: Hen\n\nAuthor: A B\n\n*** START OF THE PROJECT "
            "GUTENBERG EBOOK HEN ***\n\n"
            "CHAPTER I.\n\nA hen _ran_.\n\nTHE END\n\n*** END OF THE PROJECT GUTENBERG EBOOK HEN ***\nLicence",
            "Hen",
            "A hen ran.",
        ),
        (
            "c.txt",
            "The Bell\nby Ann Smith\n\nChapter 1: Up\n\nTom rang the bell.\n\n* * *\n\nThe End\n",
            "The Bell",
            "Tom rang the bell.",
        ),
        (
            "d.txt",
            "Idea: A cat and a dog play.\nUser requirement: short\nStyle: Cartoon\n",
            "D",
            "A cat and a dog play.",
        ),
    ],
)
def test_markup_and_what_stands_around_a_story_is_taken_off(
    tmp_path: Path, name: str, text: str, title: str, words: str
) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    record = load_story(str(path))
    assert (record.title, record.story_text) == (title, words)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            [{"shot": 1, "visual_desc": "Kim opens the box"}, {"shot": 2, "visual_desc": "A bird flies out"}],
            ["Kim opens the box.", "A bird flies out."],
        ),
        (
            {"story": {"title": "T", "scenes": [{"shots": [{"action": "Tim digs."}, {"action": "Tim stops."}]}]}},
            ["Tim digs.", "Tim stops."],
        ),
        (
            {"characters": {"Mika": "a girl"}, "prompts": ["[Mika] walks", "[NC] rain falls"]},
            ["Mika walks.", "Rain falls."],
        ),
        (
            {"boards": [{"action": "A fox looks.", "dialogue": ""}, {"action": "It runs.", "dialogue": ""}]},
            ["A fox looks.", "It runs."],
        ),
        (
            {"narrative": ["Sam cooks soup.", "John eats."], "global_profile": {"Sam": "adult"}},
            ["Sam cooks soup.", "John eats."],
        ),
    ],
)
def test_other_tools_json_is_read_by_the_names_of_its_fields(tmp_path: Path, value: object, words: list[str]) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(value), "utf-8")
    assert [one.scene_text for one in load_story(str(path)).scenes] == words


@pytest.mark.parametrize(
    ("value", "said_"),
    [
        ({"1": {"class_type": "KSampler", "inputs": {}}}, "workflow of ComfyUI"),
        ({"colour": "red"}, "holds no story"),
    ],
)
def test_json_that_tells_no_story_is_one_sentence(tmp_path: Path, value: object, said_: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(value), "utf-8")
    with pytest.raises(KathaError, match=said_):
        load_story(str(path))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The \ufb01sherman \ufb02ed. He ran.", "The fisherman fled. He ran."),
        ("Mina &amp; Tom&nbsp;ran. &quot;Hi!&quot; said Tom.", 'Mina and Tom ran. "Hi!" said Tom.'),
        ("The gar-\ndener and his well-\nknown daugh-\nter ran.", "The gardener and his well-known daughter ran."),
        ("The fish\u00aderman r\u200ban.", "The fisherman ran."),
        ("Anna Smith-\nJones ran.", "Anna Smith-Jones ran."),
        ("\uff2d\uff49\uff41 ran. \U0001d4dc\U0001d4f2\U0001d4ea sat.", "Mia ran. Mia sat."),
        ("Zo\u00c3\u00ab ran to the caf\u00c3\u00a9.", "Zo\u00eb ran to the caf\u00e9."),
        (
            "\u201cHi,\u201d said Mia\u2026 \u00bd a cake \u2014 all.",
            "\u201cHi,\u201d said Mia\u2026 \u00bd a cake \u2014 all.",
        ),
    ],
)
def test_a_text_is_brought_into_its_normal_form_and_no_further(text: str, words: str) -> None:
    assert story_of_text(text, "s").story_text == words


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_encodings_with_a_mark_or_a_form_are_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "s.txt"
    path.write_bytes("Zo\u00eb opened the door. A dog ran in.".encode(encoding))
    assert load_story(str(path)).story_text == "Zo\u00eb opened the door. A dog ran in."


@pytest.mark.parametrize(("data", "kind"), [(b"PK\x03\x04..", "zip"), (b"%PDF-1.4", "PDF"), (b"{\\rtf1", "Rich Text")])
def test_other_files_are_named(tmp_path: Path, data: bytes, kind: str) -> None:
    path = tmp_path / "s.txt"
    path.write_bytes(data)
    with pytest.raises(InputFileError, match=kind):
        load_story(str(path))


def test_no_story_of_a_folder_is_lost_whatever_its_name(tmp_path: Path) -> None:
    names = [
        "\u72d0\u72f8.txt",
        "\u4e4c\u9e26.txt",
        "a b.txt",
        "a_b.txt",
        "Zo\u00eb.fountain",
        "\u0434\u043e\u043c.md",
        "README.md",
    ]
    for name in names:
        (tmp_path / name).write_text(f"A fox saw {len(name)} crows. It ran.", "utf-8")
    records = load_stories(tmp_path)
    assert len({one.story_id for one in records}) == len(names) - 1
    assert "Zoë" in {one.story_id for one in records}
    assert load_stories(tmp_path) == records


def test_a_hash_in_a_path_is_part_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "C# tales"
    with pytest.raises(InputFileError, match=r"C# tales/story.txt.*No such file"):
        load_story(str(folder / "story.txt"))
    folder.mkdir()
    (folder / "s.jsonl").write_text('{"story_id": "a", "story_text": "A fox ran."}\n', "utf-8")
    assert load_story(f"{folder / 's.jsonl'}#a").story_text == "A fox ran."


def test_a_moral_in_its_authors_words_is_kept_and_not_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "demo.jsonl"
    path.write_text(
        '{"id": "d-01", "title": "T", "moral_label": "sour_excuse", "story": "A fox ran. It sat."}\n', "utf-8"
    )
    record = load_story(str(path))
    assert (record.story_id, record.moral_label) == ("d-01", None)
    assert (record.model_extra or {})["moral_label_as_shipped"] == "sour_excuse"


def test_titles_brackets_and_things_in_capitals_of_a_script() -> None:
    text = (
        "INT. WARD - DAY\n\nNAK has a GLOCK. He lifts his Glock and sees Ray. RAY runs from his FATHER's car.\n\n"
        "YOUNG DR. BENNETT\nGo home.\n\nYOUNG DR. BENNETT\nNow.\n\nHan (O. S.)\nWait!\n\n"
        "BOB ^ (dual)\nNo.\n\nC3PO\nYes.\n\n"
        "ANGLE ON Nak, stunned. Two NURSES help him. NURSE\nYes.\n\nNURSE\nGo!\n\n"
        "A rude GALLERY DIRECTOR sits near the Gallery and another Director. Nak asks Father and runs to Nak.\n"
    )
    record = story_of_text(text, "s")
    assert cast(record) == ["Young Dr. Bennett", "Han", "Bob", "C3PO", "Nak", "Ray"]
    told = record.story_text
    assert "Nak has a Glock." in told
    assert "Ray runs from his Father's car." in told
    assert 'Young Dr. Bennett said, "Go home."' in told
    assert 'Han said, "Wait!"' in told
    assert 'Bob said, "No."' in told
    assert "A rude Gallery Director sits" in told
    assert "Nak, stunned. Two nurses help him." in told


def test_a_plain_story_loads_no_reader_of_another_kind() -> None:
    example = Path(__file__).parents[2] / "examples" / "lion_and_mouse.txt"
    child = (
        "import sys; from katha.stories import load_story; load_story(sys.argv[1]);"
        "print(*sorted(name.rpartition('.')[2] for name in sys.modules if name.startswith('katha.intake.')))"
    )
    told = subprocess.run(
        [sys.executable, "-c", child, str(example)], capture_output=True, check=True, text=True
    ).stdout
    assert told.split() == ["decoding", "drafts", "kinds", "names", "normal", "prose"]


@pytest.mark.parametrize(
    ("name", "text", "words", "named"),
    [
        ("a.txt", '```json\n{"scenes": [{"event": "Lila finds a coin"}, {"event": "Lila runs"}]}\n```\n',
         "Lila finds a coin. Lila runs.", "shots in JSON"),
        ("a.txt", "0:00-0:05 Lila finds a coin.\n0:05-0:10 She runs.\n", "Lila finds a coin.\nShe runs.", "times"),
        ("a.txt", "12/03/24, 10:02 - Mia: I ran!\n12/03/24, 10:03 - Tom: Where?\n", "Mia: I ran!\nTom: Where?", "time"),
        ("a.txt", '<scene id="1"><location>market</location><action>Lila runs.</action></scene>\n<scene><location>well'
         "</location><action>Lila sits.</action></scene>", "Lila runs.\n\nLila sits.", "XML, labelled blocks"),
        ("a.csv", "Nr;Bild;Beschreibung\n1;Totale;Ein Fuchs rennt\n2;Nah;Er sitzt\n", "Ein Fuchs rennt. Er sitzt.",
         "'Bild'"),
        ("a.csv", "No,Description\n1,A fox runs\n2,A fox sits\n", "A fox runs. A fox sits.", "CSV"),
        ("a.txt", "INNEN. HAUS - NACHT\n\nMIA rennt.\n\nMIA\nHalt!\n", 'Mia rennt.\n\nMia said, "Halt!"', "script"),
        ("a.txt", "PANEL 1\nMia runs.\nMIA/TOM: You!\nPANEL 2\nTom sits.\n",
         'Mia runs. Mia and Tom said, "You!" Tom sits.', "comics"),
        ("a.txt", "INT. HUT - DAY\nANNA cries.\nANNA\nOnions.\nBEN\n(off)\nWhy?\nBen sits down.\nANNA\nNo.\n",
         'Anna cries.\n\nAnna said, "Onions."\n\nBen said, "Why?"\n\nBen sits down.\n\nAnna said, "No."', "script"),
        ("a.fountain", "EXT. BAY - DAY\n\n-- Mia buys milk.\n-- Tom drops it.\n", "Mia buys milk.\n\nTom drops it.",
         "script"),
    ],
    ids=["fence", "clock", "chat", "XML", "German table", "No", "German script", "two speak", "no gaps", "dashes"],
)  # fmt: skip
def test_what_strangers_bring_is_read(tmp_path: Path, name: str, text: str, words: str, named: str) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    record = load_story(str(path))
    assert record.story_text == words
    assert named in said(record)
    assert not {"Tag", "Nacht", "Mia/Tom", "off"} & set(cast(record))


def test_files_of_one_name_and_two_endings_are_two_stories(tmp_path: Path) -> None:
    (tmp_path / "fox.txt").write_text("A fox ran. It sat.", "utf-8")
    (tmp_path / "fox.md").write_text("# Fox\n\nA fox sang. It slept.", "utf-8")
    found = load_stories(tmp_path)
    assert len({one.story_id for one in found}) == 2
    assert sorted(one.story_text for one in found) == ["A fox ran. It sat.", "A fox sang. It slept."]
