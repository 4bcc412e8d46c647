"""Stories written in the forms that people have: for each form, a function from scenes to a text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Told:
    """A scene: who is there, where and when, what one does to what, and what somebody says."""

    who: str
    place: str
    time: str
    verb: str
    thing: str
    said: str

    @property
    def act(self) -> str:
        return f"{self.who} {self.verb} the {self.thing}."


Scenes = Sequence[Told]


def prose(scenes: Scenes) -> str:
    return " ".join(one.act for one in scenes)


def fountain(scenes: Scenes) -> str:
    head = "Title: The Tale\nAuthor: Nobody Known\nDraft date: 1/1/2020\n\n"
    return head + "\n\n".join(
        f"INT. {one.place.upper()} - {one.time.upper()} #{at}#\n\n{one.act}\n\n@{one.who}\n(quietly)\n{one.said}"
        for at, one in enumerate(scenes, 1)
    )


def spoken_lines(scenes: Scenes) -> str:
    lines = ["EXT. FIELD - DAY"]
    for one in scenes:
        lines += [one.act, f"{one.who}: (nodding) {one.said}", f"{one.who}:({one.act}) Oh!"]
    return "\n".join(lines)


def final_draft(scenes: Scenes) -> str:
    def part(kind: str, text: str) -> str:
        return f'<Paragraph Type="{kind}"><Text>{text.replace("&", "&amp;")}</Text></Paragraph>'

    body = "".join(
        part("Scene Heading", f"INT. {one.place.upper()} - {one.time.upper()}")
        + part("Action", one.act)
        + part("Character", one.who.upper())
        + part("Parenthetical", "(beat)")
        + part("Dialogue", one.said)
        for one in scenes
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><FinalDraft '
        f'DocumentType="Script"><Content>{body}</Content></FinalDraft>'
    )


def comic(scenes: Scenes) -> str:
    panels = "\n\n".join(
        f"Panel {at}. Wide shot. {one.act}\n\n{one.who.upper()}: {one.said}\n\nSFX: BOOM"
        for at, one in enumerate(scenes, 1)
    )
    return f"PAGE ONE ({len(scenes)} PANELS)\n\n{panels}"


def table(scenes: Scenes) -> str:
    rows = "\n".join(f"| {at} | WS | {one.place} | {one.who} | {one.act} |" for at, one in enumerate(scenes, 1))
    return f"# The Tale\n\n| Shot | Size | Location | Characters | Action |\n|---|:--|---|---|---|\n{rows}\n"


def csv(scenes: Scenes) -> str:
    rows = "\n".join(f'{at},"{one.who}","{one.act}",static' for at, one in enumerate(scenes, 1))
    return f"Shot,Characters,Description,Camera\n{rows}\n"


def blocks(scenes: Scenes) -> str:
    return "\n\n".join(
        f"[SCENE {at}]\nLocation: a {one.place}, {one.time}\nCharacters: {one.who}\nAction: {one.act}\nMood: calm"
        for at, one in enumerate(scenes, 1)
    )


def bold_blocks(scenes: Scenes) -> str:
    return "\n\n".join(
        f"**Scene {at}: One**\n\n- **Setting:** {one.place}\n- **Characters:** {one.who}\n- **Description:** {one.act}"
        for at, one in enumerate(scenes, 1)
    )


def beats(scenes: Scenes) -> str:
    labels = ("Opening Image", "Catalyst", "Midpoint", "All Is Lost", "Finale", "Final Image")
    return "\n".join(f"{at}. {labels[at % len(labels)]}: {one.act}" for at, one in enumerate(scenes, 1))


def outline(scenes: Scenes) -> str:
    roman = ("I", "II", "III", "IV", "V", "VI")
    return "\n".join(f"{roman[at % len(roman)]}. The {one.place}\n   A. {one.act}" for at, one in enumerate(scenes))


def prompts(scenes: Scenes) -> str:
    cast = dict.fromkeys(one.who for one in scenes)
    looks = "\n".join(f"[{name}] a tall person with a green hat" for name in cast)
    return looks + "\n" + "\n".join(f"[{one.who}] {one.verb} the {one.thing} #{one.said}" for one in scenes)


def subtitles(scenes: Scenes) -> str:
    return "\n\n".join(
        f"{at}\n00:00:{at:02d},000 --> 00:00:{at:02d},900\n<i>{one.act}</i>" for at, one in enumerate(scenes, 1)
    )


def twee(scenes: Scenes) -> str:
    parts = [":: StoryTitle\nThe Tale\n"]
    for at, one in enumerate(scenes):
        parts.append(f":: P{at} [tag]\n{one.act}\n\n[[Go on->P{at + 1}]]\n")
    return "\n".join(parts)


def gutenberg(scenes: Scenes) -> str:
    head = "The Project Gutenberg eBook of The Tale\n\nTitle: The Tale\n\nAuthor: Nobody Known\n\n"
    mark = "*** {} OF THE PROJECT GUTENBERG EBOOK THE TALE ***"
    return (
        f"{head}{mark.format('START')}\n\nCHAPTER I.\n\n{prose(scenes)}\n\nTHE END\n\n"
        f"{mark.format('END')}\n\nLicence text."
    )


def markdown(scenes: Scenes) -> str:
    return "# The Tale\n\n" + "\n\n".join(f"**{one.who}** {one.verb} the [{one.thing}](http://a.b)." for one in scenes)


def latex(scenes: Scenes) -> str:
    body = "\n\n".join(f"\\section{{Part}}\n{one.who} {one.verb} the \\emph{{{one.thing}}}. % note" for one in scenes)
    return (
        f"\\documentclass{{article}}\n\\title{{The Tale}}\n\\author{{Nobody Known}}\n"
        f"\\begin{{document}}\n{body}\n\\end{{document}}"
    )


def html(scenes: Scenes) -> str:
    body = "".join(f"<p>{one.who}&nbsp;{one.verb} the <b>{one.thing}</b>.</p>" for one in scenes)
    return (
        f"<!DOCTYPE html><html><head><title>x</title></head><body><nav>Home</nav><h1>The Tale</h1>{body}</body></html>"
    )


def json_shots(scenes: Scenes) -> str:
    rows = [
        {"scene_id": at, "event": one.act, "emotion": "calm", "transition_dimension": "action", "flux_prompt": "x"}
        for at, one in enumerate(scenes, 1)
    ]
    return json.dumps({"id": "t", "title": "The Tale", "moral_label": "own_words", "scenes": rows}, ensure_ascii=False)


def vistory(scenes: Scenes) -> str:
    shots = [
        {
            "index": at,
            "Setting Description": {"en": one.place},
            "Plot Correspondence": {"en": one.act},
            "Characters Appearing": {"en": [one.who]},
            "Static Shot Description": {"en": "a view"},
        }
        for at, one in enumerate(scenes, 1)
    ]
    people = {one.who: {"name_en": one.who, "prompt_en": "a tall person"} for one in scenes}
    return json.dumps({"Story_type": {"en": "tale"}, "Shots": shots, "Characters": people}, ensure_ascii=False)


def entities(scenes: Scenes) -> str:
    rows = [
        {
            "scene_num": at,
            "video_prompts": [f"{one.who}: Man with a hat.\nThe Lobby: A room.\n\n{one.act}"],
            "cut": [True],
            "action_descriptions": [one.act],
        }
        for at, one in enumerate(scenes, 1)
    ]
    return json.dumps({"story_name": "t", "story_overview": "A tale.", "scenes": rows}, ensure_ascii=False)


FORMS: Mapping[str, tuple[str, Callable[[Scenes], str]]] = {
    "story.txt": ("story", prose),
    "script.fountain": ("Fountain script", fountain),
    "fountain.txt": ("Fountain script", fountain),
    "lines.txt": ("Fountain script", spoken_lines),
    "script.fdx": ("Final Draft script", final_draft),
    "comic.txt": ("comics script", comic),
    "table.md": ("shot list (a table)", table),
    "list.csv": ("shot list (CSV)", csv),
    "blocks.txt": ("labelled blocks", blocks),
    "bold.md": ("labelled blocks", bold_blocks),
    "beats.txt": ("beat sheet", beats),
    "outline.txt": ("outline", outline),
    "prompts.txt": ("list of prompts", prompts),
    "film.srt": ("subtitles", subtitles),
    "game.twee": ("Twine story", twee),
    "book.txt": ("Project Gutenberg book", gutenberg),
    "page.md": ("Markdown text", markdown),
    "paper.tex": ("LaTeX document", latex),
    "page.html": ("HTML page", html),
    "demo.json": ("shots in JSON", json_shots),
    "vistory.json": ("shots in JSON", vistory),
    "entities.json": ("shots in JSON", entities),
}
"""By a file's name: its kind, and who writes it."""
