"""Scripts: Fountain, Final Draft, and those written without a program. screenplay-tools reads the forms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from katha.intake.drafts import Passage, TextDraft, plain_marks, sentence, set_heading, speech
from katha.intake.names import TITLES, Names, bare, is_title_case, looks_of, word_set, words
from katha.intake.prose import title_page

HEADING = re.compile(
    r"^\s*(?:\d+[A-Z]?[.)]?\s+)?(?:INT\.?\s*/\s*EXT|EXT\.?\s*/\s*INT|INT|EXT|EST|I/E)(?:[. :]|\s-)\s*\S.*$",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"^\s*(?:INNEN|AUSSEN|AU\u1e9eEN|INT\u00c9RIEUR|EXT\u00c9RIEUR|INTERIOR|EXTERIOR)(?:/\w+)?[. :-]\s*\S"
)
"""Headings that Fountain does not know: of German and French scripts, and in full."""
_BONEYARD = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_NOTE = re.compile(r"\[\[.*?\]\]", re.DOTALL)
_TRANSITION = re.compile(
    r"^\s*>?\s*(?:[A-Z ]{0,24}\b(?:TO|IN|OUT):?\s*(?:BLACK|WHITE)?[.:]?|[A-Z' ]+ TO:?|FADE.*|CUT TO.*|"
    r"DISSOLVE.*|SMASH CUT.*|"
    r"(?:THE )?END\.?|INTERCUT.*|CONTINUED:?.*|\(CONTINUED\)|\(MORE\)|BLACK\.?|CUT\.|(?:END )?(?:OF "
    r")?(?:ACT|TEASER|SHOW).{0,12})\s*$"
)
_ALL_CAPITALS = re.compile(r"^[^a-z]*[^\W\d_][^a-z]*$")
_SPOKEN_LINE = re.compile(
    r"^\s{0,40}(?P<who>[^\W\d_a-z][\w .'\u2019#&-]{0,30}?)\s*(?P<how>\([^()\n]*\))?\s*:\s*(?P<said>\S.*)?$"
)
_BRACKET = re.compile(r"^\((?P<how>[^()]*)\)\s*(?P<rest>.*)$", re.DOTALL)
_NUMBERED = re.compile(r"^\d+[A-Z]?[.)]?\s+(?:INT|EXT|EST|I/E)\b")
_SEEN = re.compile(
    r"^(?:(?:NEW|REVERSE|WIDE|LOW|HIGH) )?(?:ANGLE|CLOSE|CLOSE[- ]UP|WIDE|TIGHT|BACK|PUSH IN) ON:? (?=\S)"
)
"""How a line of action begins that says what the camera does: "ANGLE ON Edward, stunned"."""
_UNSEEN = re.compile(r"(?P<who>[A-Z][\w.'\u2019-]*(?: [A-Z][\w.'\u2019-]*){0,2}) ?\((?:[OV]\. ?[SCO]\.?|off|cont'd)\)")
_STARTS = frozenset(("the", "a", "an", "he", "she", "they", "it", "his", "her", "their", "there", "we", "this", "that"))
# One line in capitals is a shout; two with speech below them are a script.
_FEWEST_CUES = 2
_FEWEST_GAPS = 0.1
# "THE SECOND MAN IN BLACK": longer lines in capitals are headings or shouts.
_LONGEST_CUE = 5


@dataclass
class _Line:
    """An element of a script. kind: heading, action, cue, how, said, sung, section, synopsis or transition."""

    kind: str
    text: str
    extra: str = ""


def is_cue(line: str) -> bool:
    """Return whether a line is in capitals and short, and none of those that are nobody's cue."""
    told = line.strip().lstrip("@").rstrip("^").strip()
    name = re.sub(r"\([^)]*\)", "", told).strip()
    if not name or not _ALL_CAPITALS.match(name) or len(name.split()) > _LONGEST_CUE or len(name) < 2:
        return False
    if re.search(r"[!?:;=*\u2026]|\.\.|\.$", name) and not re.search(r"\b(?:JR|SR|DR|MR|MRS|[A-Z])\.$", name):
        return False
    lower = name.lower().strip("\"'")
    return not _begins_no_cue(lower) and HEADING.match(line) is None and any(one.isalpha() for one in name)


def _begins_no_cue(lower: str) -> bool:
    found = any(lower == one or lower.startswith((f"{one} ", f"{one}:", f"{one}-")) for one in word_set("no_cue"))
    found |= lower.split()[-1:] in (["shot"], ["shots"], ["pov"], ["montage"], ["sequence"], ["angle"], ["close-up"])
    return found and lower not in word_set("narrators")


def looks_like_script(text: str) -> bool:
    """Return whether a text has scene headings, or cues in capitals above what is said, twice or more."""
    lines = text.split("\n")
    headings = [line for line in lines if HEADING.match(line)]
    if looks_like_play(text) or any(_ELSEWHERE.match(line) for line in lines):
        return True
    if any(re.match(r"^\s*(?:\d+[A-Z]?[.)]?\s+)?(?:INT|EXT|EST|I/E)\b", line) for line in headings):
        return True
    if headings and any(len(line) < 60 and re.search(r"\s[-\u2013\u2014]\s", line) for line in headings):
        return True
    cues = list(_cues(lines))
    forced = sum(bool(re.match(r"^\s*@\w", line)) for line in lines)
    if len(cues) + forced < _FEWEST_CUES:
        return False
    again = any(
        is_title_case(found) for cue in cues for found in re.findall(rf"(?i)(?<!\w){re.escape(_name(cue))}(?!\w)", text)
    )
    return forced > 0 or len(cues) > _FEWEST_CUES or again or bool(title_page(text)[0])


def _name(cue: str) -> str:
    return re.sub(r"\([^)]*\)", "", cue).strip(" ^@")


def _cues(lines: list[str]) -> Iterator[str]:
    """Yield the lines in capitals that stand after an empty line and above one with small letters."""
    for at, line in enumerate(lines[:-1]):
        alone = at == 0 or not lines[at - 1].strip()
        below = lines[at + 1].strip()
        if alone and below and any(one.islower() for one in below) and is_cue(line):
            yield line


def read_fountain(text: str) -> TextDraft:
    """Return a script in Fountain, or in capitals and small letters as a typewriter would write it, as a story."""
    front, body = title_page(text)
    typed, body = _typed_title(body) if not front else ("", body)
    body, boneyards = _BONEYARD.subn("", _as_script(body))
    body, notes = _NOTE.subn("", body)
    names = Names(body)
    lines = _prepared(body.split("\n"), names)
    from screenplay_tools.fountain.parser import Parser

    parser = Parser()
    parser.add_text("\n".join(["", *lines, ""]))
    draft = _told("Fountain script", list(_elements(parser.script.elements)), names)
    draft.title = plain_marks(front.get("title", typed)).strip(" _*")
    rest = [f"{key}: {said}" for key, said in front.items() if key != "title"]
    draft.leave("lines of the title page", rest, "they are about the script")
    if boneyards or notes:
        draft.left_out.append(f"Not read: {boneyards + notes} notes: they are not part of the story.")
    return draft


_BYLINE = re.compile(r"^\s*(?:(?:written|screenplay|story|adapted|a screenplay|a play)\s+)?by\b.{0,60}$", re.IGNORECASE)
_ROLE_LINE = re.compile(r"^\s{0,8}(?P<who>[A-Z][A-Z' ]{1,20}[A-Z])\.\s+(?P<said>\S.*)$")
_SCENE_LINE = re.compile(r"^\s*(?:ACT\s+[IVX\d]+|SCENE\s+[IVX\d]+)\b[.:]?\s*(?P<where>.*)$", re.IGNORECASE)


def _typed_title(text: str) -> tuple[str, str]:
    """Return the title that stands above "by Sam Poe" at the head of a script, and the text below."""
    lines = text.lstrip("\n").split("\n")
    at = next((number for number, line in enumerate(lines[:8]) if _BYLINE.match(line)), None)
    if at is None or any(HEADING.match(line) for line in lines[:at]):
        return "", text
    below = next((number for number in range(at + 1, len(lines)) if not lines[number].strip()), len(lines))
    title = " ".join(line.strip(' "') for line in lines[:at])
    return " ".join(title.split()), "\n".join(lines[below:])


def looks_like_play(text: str) -> bool:
    """Return whether a text has lines of a play: "SAMPSON. Come here!"."""
    return len(_roles(text.split("\n"))) > 1


def _roles(lines: list[str]) -> list[re.Match[str]]:
    return [found for line in lines if (found := _role(line)) is not None]


def _role(line: str) -> re.Match[str] | None:
    """Return who speaks in a line of a play, and what; a title ("DR. BENNETT") is nobody, and a name is not said."""
    found = _ROLE_LINE.match(line)
    if found is None or found["who"].split()[-1].lower() in TITLES or not any(map(str.islower, found["said"])):
        return None
    return found if is_cue(found["who"]) else None


def _as_script(text: str) -> str:
    """Return a play written as a script; any other text as it is."""
    if not looks_like_play(text):
        return text
    made: list[str] = []
    for line in text.split("\n"):
        role, scene = _role(line), _SCENE_LINE.match(line)
        enters = re.match(r"^\s*[\[(]?(Enter|Exit|Exeunt)\s+([^.\])]+)[.\])]*\s*$", line)
        if scene is not None:
            made += ["", f".{scene['where'].strip(' .')}" if scene["where"].strip(" .") else "", ""]
        elif role is not None:
            made += ["", f"@{role['who']}", role["said"], ""]
        elif enters is not None:
            several = " and " in enters[2] or enters[1] == "Exeunt"
            made += ["", f"{enters[2]} {'enter' if enters[1] == 'Enter' else 'leave'}{'' if several else 's'}.", ""]
        else:
            made.append(line)
    return "\n".join(made)


def read_final_draft(text: str) -> TextDraft:
    """Return a Final Draft document as a story.

    Raises:
        ValueError: it is not a well-formed document of that kind.
    """
    from defusedxml.ElementTree import ParseError
    from screenplay_tools.fdx.parser import Parser

    told = re.sub(r"^.*?(?=<FinalDraft)", "", text, flags=re.DOTALL)
    try:
        root = _root(told)  # what expands itself is refused here, before the parser sees it
    except (ParseError, ValueError) as error:
        raise ValueError(f"it is not a whole Final Draft document ({error})") from error
    _one_text_each(root)
    from xml.etree.ElementTree import tostring

    script = Parser().parse(tostring(root, encoding="unicode"))
    lines = list(_elements(script.elements))
    names = Names("\n".join(line.text for line in lines))
    draft = _told("Final Draft script", lines, names)
    title = [_inner(one) for one in root.findall("TitlePage/Content/Paragraph")]
    title = [one for one in title if one.strip()]
    draft.title = " ".join(title[0].split()).strip('"') if title and len(title[0]) < 100 else ""
    draft.leave("lines of the title page", title[1:], "they are about the script")
    return draft


def _root(text: str) -> Any:
    """Return the document's element; a bare "&", and signs that XML forbids, are mended."""
    from defusedxml.ElementTree import ParseError, fromstring

    try:
        return fromstring(text)
    except ParseError:
        plain = re.sub(r"&(?!(?:#\d+|#x[0-9a-fA-F]+|amp|lt|gt|quot|apos);)", "&amp;", text)
        plain = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "", plain)
        plain = re.sub(r"<(?!/?[A-Za-z?!])", "&lt;", plain)
        return fromstring(plain)


def _inner(element: object) -> str:
    return "".join(element.itertext())  # type: ignore[attr-defined]


def _one_text_each(root: Any) -> None:
    """Join the runs of a paragraph, and take those of two who speak at once out: the library reads neither."""
    content = root.find("Content")
    for paragraph in list(content) if content is not None else ():
        both = paragraph.find("DualDialogue")
        if both is not None:
            at = list(content).index(paragraph)
            content.remove(paragraph)
            for number, inner in enumerate(both.findall("Paragraph")):
                content.insert(at + number, inner)
    for paragraph in root.iter("Paragraph"):
        runs = paragraph.findall("Text")
        if len(runs) > 1:
            runs[0].text = "".join(_inner(run) for run in runs)
            for child in list(runs[0]):
                runs[0].remove(child)
            for run in runs[1:]:
                paragraph.remove(run)


def _prepared(lines: list[str], names: Names) -> list[str]:
    """Mark what Fountain's grammar does not know as its own: cues with other letters, "Nina: (how) words"."""
    made: list[str] = []
    spoken = _spoken_names(lines)
    lines = _with_gaps(lines)
    for at, line in enumerate(lines):
        told, found = line.strip(), _SPOKEN_LINE.match(line)
        after = lines[at + 1].strip() if at + 1 < len(lines) else ""
        if _ELSEWHERE.match(told):
            made += ["", f".{told}", ""]
        elif _NUMBERED.match(told):  # "12 INT. BARN 12"
            number, _, rest = told.partition(" ")
            plain = re.sub(rf"\s+{re.escape(number)}$", "", rest.strip())
            made += ["", f"{plain} #{number.rstrip('.)')}#", ""]
        elif HEADING.match(line) and not told.startswith("."):
            made += ["", told, ""]
        elif found is not None and " ".join(found["who"].split()) in spoken and not _TRANSITION.match(told):
            how = [found["how"]] if found["how"] else []
            made += ["", f"@{found['who'].strip()}", *how, *_said_lines(found["said"])]
            made += [""] if found["said"] else []
        elif made and made[-1].strip():
            made.append(line)
        else:
            made.append(_first_line(line, told, after))
    return made


def _with_gaps(lines: list[str]) -> list[str]:
    """Return a script's lines with an empty one before each cue and after what is said, where it has hardly any."""
    full = [line for line in lines if line.strip()]
    if len(lines) - len(full) > _FEWEST_GAPS * len(full):
        return lines
    made: list[str] = []
    cues = {bare(line).lower() for line in full if is_cue(line)}
    speaking = said = False
    for line, after in zip(full, [*full[1:], ""], strict=True):
        cue = is_cue(line) and any(map(str.islower, after)) and HEADING.match(after) is None
        acts = said and _acts(line, cues)
        made += ["", line] if cue or acts or HEADING.match(line) else [line]
        speaking = cue or (speaking and not acts and HEADING.match(line) is None)
        said = speaking and not cue and _BRACKET.match(line.strip()) is None
    return made


def _acts(line: str, cues: set[str]) -> bool:
    """Return whether a line below speech tells what a character does: it begins with a name of a cue and a verb."""
    found = re.match(r"\s*((?:[A-Z][\w'\u2019-]*\s)+)[a-z]+(?:s|ed)\b", line)
    return found is not None and (found[1].strip().lower() in cues or found[1].strip().lower() in _STARTS)


def _first_line(line: str, told: str, after: str) -> str:
    """Return a line below an empty one, marked as what it is where that is a cue, or in capitals and none."""
    if is_cue(line) and after and not told.startswith("@"):
        return f"@{' '.join(told.replace('^', ' ').split())}"
    unseen = _UNSEEN.fullmatch(told)
    if unseen is not None and after:  # "Han (O. S.)"
        return f"@{unseen['who']}"
    if _ALL_CAPITALS.match(told) and not re.match(r"^[.!@>#=~(]", told) and not told.endswith("TO:"):
        return f"!{told}"
    return told[1:-1] if re.match(r"^\(.*\)$", told) else line  # "(Ray pulls her up.)"


def _spoken_names(lines: list[str]) -> set[str]:
    """Return who speaks in lines of the form "Nina: words", where there is more than one of them."""
    found = [match for line in lines if (match := _SPOKEN_LINE.match(line)) and _speaks(match["who"], line)]
    return {" ".join(match["who"].split()) for match in found} if len(found) > 1 else set()


def _said_lines(said: str | None) -> list[str]:
    """Split "(how) words" into its lines."""
    if not said:
        return []
    found = _BRACKET.match(said.strip())
    if found is None:
        return [said.strip()]
    return [f"({found['how'].strip()})", *([found["rest"].strip()] if found["rest"].strip() else ["..."])]


def _speaks(who: str, line: str) -> bool:
    """Return whether the words before a colon name a speaker, and are not a label."""
    lower = " ".join(who.lower().split())
    labels = {
        label for kind, some in words()["labels"].items() for label in some if kind not in ("narration", "characters")
    }
    if lower in word_set("narrators") or lower in word_set("sounds"):
        return True
    if lower in labels or lower in word_set("title_page") or len(who.split()) > 3 or _begins_no_cue(lower):
        return False
    return HEADING.match(line) is None and (who.isupper() or all(part[:1].isupper() for part in who.split()))


def _elements(elements: Iterable[object]) -> Iterator[_Line]:
    from screenplay_tools.screenplay import Character, ElementType, SceneHeading

    kinds = {
        ElementType.ACTION: "action", ElementType.DIALOGUE: "said", ElementType.PARENTHETICAL: "how",
        ElementType.LYRIC: "sung",
        ElementType.TRANSITION: "transition", ElementType.SECTION: "section", ElementType.SYNOPSIS: "synopsis",
    }  # fmt: skip
    for one in elements:
        if isinstance(one, SceneHeading):
            yield _Line("heading", one.text, one.scene_number or "")
        elif isinstance(one, Character):
            yield _Line("cue", one.name, one.extension or "")
        elif one.type in kinds:  # type: ignore[attr-defined]
            yield _Line(kinds[one.type], one.text)  # type: ignore[attr-defined]


class _Telling:
    """The elements of a script told as prose, one after the other."""

    def __init__(self, kind: str, names: Names) -> None:
        self.names, self.draft = names, TextDraft(kind)
        self.place: tuple[str, str, bool] = ("", "", False)
        self.number, self.begins = "", False
        self.who: list[str] = []
        self.cue, self.how = "", ""
        self.sections: list[str] = []
        self.synopses: list[str] = []
        self.transitions: list[str] = []
        self.sounds: list[str] = []

    def add(self, text: str) -> None:
        """Take a paragraph in."""
        told = sentence(self.names.told(plain_marks(text)))
        if any(one.isalpha() for one in told):
            place, time, outdoors = self.place
            self.draft.passages.append(Passage(told, place, time, outdoors, self.number, self.begins))
            self.begins = False

    def heading(self, line: _Line) -> None:
        if re.match(r"^\s*FADE\b", line.text, re.IGNORECASE):
            self.transitions.append(line.text)
            return
        self.place = set_heading(plain_marks(line.text), self.names)
        self.number, self.begins, self.cue = line.extra, True, ""

    def action(self, line: _Line) -> None:
        for block in re.split(r"\n\s*\n|\n\s*(?=--\s)", line.text):
            text = " ".join(part.strip() for part in block.split("\n") if not self._no_action(part))
            text = _SEEN.sub("", re.sub(r"^\((.*)\)$", r"\1", text.strip()))
            if text:
                self.add(aged(text, self.names))

    def _no_action(self, part: str) -> bool:
        told = plain_marks(part).strip(" !.")
        if not told:
            return True
        if _TRANSITION.match(part.strip(" !")):
            self.transitions.append(told)
            return True
        heads = re.match(r"^(?:end of )?(?:act|scene|chapter|part|episode)\s+\w+$", told, re.IGNORECASE)
        if heads is not None or (_ALL_CAPITALS.match(told) and _begins_no_cue(told.lower())):
            self.sections.append(told)
            return True
        return False

    def speaker(self, line: _Line) -> None:
        """Take in who speaks next."""
        cue = plain_marks(re.sub(r"\([^)]*\)", " ", line.text)).strip(" ^@#")
        self.cue, self.how = cue, ""
        extra = line.extra.lower().strip(" .")
        if extra in words()["spoken"]:
            self.how = extra

    def said(self, text: str, *, sung: bool = False) -> None:
        """Take in what is said: as prose where a narrator says it, as direct speech else."""
        lower = bare(self.cue).lower()
        text = plain_marks(text).strip()
        if lower in word_set("sounds"):
            self.sounds.append(text)
        elif lower in word_set("narrators") or self.cue.lower() in word_set("narrators") or not self.cue:
            self.add(text)
        elif any(one.isalpha() for one in text):
            who = self.speakers() if _is_person(self.cue) else ""
            told = speech(who, text, "singing" if sung else self.how) if who else sentence(text)
            if told:
                place, time, outdoors = self.place
                self.draft.passages.append(Passage(told, place, time, outdoors, self.number, self.begins))
                self.begins = False
        self.how = ""

    def speakers(self) -> str:
        """Return who speaks, by name: "Mia and Tom"."""
        if bare(self.cue).lower() in word_set("everyone"):
            return "everyone"
        parts = [part for part in re.split(r"\s*(?:&|/|,|\band\b|\bAND\b)\s*", self.cue) if bare(part)]
        found = [name for part in parts if (name := self.names.add(part))]
        return " and ".join(dict.fromkeys(found))

    def bracket(self, text: str) -> None:
        """Take in a bracket: how something is said, or what is done meanwhile."""
        told = " ".join(plain_marks(text).split()).strip(" ()")
        first = told.split(maxsplit=1)[0].lower().strip(",.;") if told else ""
        lower = told.lower().strip(" .")
        if not told or lower in word_set("unsaid") or bare(self.cue).lower() in word_set("narrators"):
            return
        if lower in words()["spoken"] or (first in words()["spoken"] and len(lower.split()) < 3):
            self.how = lower if lower in words()["spoken"] else first
            return
        who = self.speakers()
        if told[:1].isupper() and (told.endswith(".") or ". " in told):
            opens = first in _STARTS or any(told.startswith(name) for name in self.names.cast)
            told = (
                re.sub(r"^(?:He|She)\b|(?<=[.!?] )(?:He|She)\b", who[:1].upper() + who[1:], told, count=1)
                if who
                else told
            )
            self.add(told if opens or not who else f"{who} {told[:1].lower()}{told[1:]}")
        elif first.endswith("ing") and who and first not in ("nothing", "something", "everything", "during", "morning"):
            self.add(f"{who} {'are' if ' and ' in who else 'is'} {told}")


def _told(kind: str, lines: list[_Line], names: Names) -> TextDraft:
    """Return a script's elements as prose."""
    telling = _Telling(kind, names)
    _take_names(lines, names)
    for line in lines:
        if line.kind == "heading":
            telling.heading(line)
        elif line.kind == "cue":
            telling.speaker(line)
        elif line.kind == "how":
            telling.bracket(line.text)
        elif line.kind in ("said", "sung"):
            telling.said(line.text, sung=line.kind == "sung")
        elif line.kind == "action":
            telling.cue = ""
            telling.action(line)
        else:
            {"section": telling.sections, "synopsis": telling.synopses, "transition": telling.transitions}[
                line.kind
            ].append(line.text)
    draft = telling.draft
    draft.cast(names)
    draft.leave("headings of sections", telling.sections, "they are not part of the story")
    draft.leave("synopses", telling.synopses, "they are not part of the story")
    draft.leave("transitions", telling.transitions, "they are of the cut")
    draft.leave("sounds", telling.sounds, "no picture shows them")
    return draft


def _take_names(lines: list[_Line], names: Names) -> None:
    """Learn who is in a script, from its cues and from names with a bracket, before a line of it is told."""
    for line in lines:
        if line.kind == "cue":
            telling = _Telling("", names)
            telling.speaker(line)
            if _is_person(telling.cue):
                telling.speakers()
        elif line.kind == "action":
            for name, look in looks_of(line.text):
                last = re.split(r"\s{2,}|\b(?:AND|WITH|ON)\b", name)[-1]
                if len(last.split()) <= 3 and not _begins_no_cue(last.lower()) and is_look(look):
                    names.add(last, look)


def _is_person(cue: str) -> bool:
    """Return whether a cue is a person: no narrator, sound, shot or heading."""
    lower = bare(cue).lower()
    return lower not in word_set("narrators") | word_set("sounds") and not _begins_no_cue(lower)


def is_look(text: str) -> bool:
    """Return whether a bracket tells of looks or age, and not of how something is filmed or said."""
    lower = text.lower().strip(" .")
    return (
        lower not in word_set("unsaid")
        and lower not in words()["spoken"]
        and not lower.startswith(("v.o", "o.s", "to "))
    )


_AGED = re.compile(r"(?P<name>(?<!\w)[^\W\d_][\w'\u2019. -]*?)\s*\((?P<look>[^()]{1,120})\)")
_AGE = re.compile(
    r"^\s*(?:age[d]?\s*)?(?:mid[- ]|late |early |about |around |"
    r"~)?(?P<age>\d{1,3})(?P<some>'?s)?\b(?:\s*(?:years? old|yrs?|y\.?o\.?))?"
)


def aged(text: str, names: Names) -> str:
    """Return a line without the brackets after names: "ROSA (70)" is "70-year-old ROSA", once."""

    def told(found: re.Match[str]) -> str:
        name, look = found["name"], found["look"]
        last = re.split(r"[.,;:!?]\s+", name)[-1]
        known = next(
            (one for at in range(len(last.split())) if (one := names.known(" ".join(last.split()[at:])))), None
        )
        age = _AGE.match(look)
        if known is None and not (age is not None and last.split()[-1][:1].isupper()):
            return found[0]
        who = " ".join(last.split()[-len((known or last.split()[-1]).removeprefix("the ").split()) :])
        before = name[: len(name) - len(who)]
        if known is None or age is None or age["some"] or re.search(r"(?:\b(?:an?|the|old|young)\s+)$", before, re.I):
            return name
        return f"{before}{age['age']}-year-old {who}"

    return _AGED.sub(told, text)
