"""Say which names and sentences of the audit of 2026-11-26 are left: `python -m benchmarks.names`.

The audit read the whole tree and listed forty names that do not explain themselves and twenty sentences that a native
reader stumbles on. A name that is left in the core needs a reason here; those of the stand-in stay, because it is
frozen. The exit code is 1 where one is left without a reason, or a reason is given for one that is gone.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from benchmarks.structure import CORE, library

ROOT = Path(__file__).parents[1]
NAMES = (
    *("known.Known", "telling.Teller", "tracks", "beasts", "listeners", "nearness", "checks", "lasting"),
    *("settings.Setting", "renewal.sealed", "told.Others", "asking.Asked", "asked.read_question", "trial.Trial"),
    *("doers", "artifacts.patiently", "objects", "upkeep", "steps.Desk", "drafts.Settled", "drafts.Spot"),
    *("hands.Elsewhere", "hands.Onward", "protocols.LetsGo", "protocols.FillsTheMemory", "repair.dice"),
    *("told._Teller", "making.Making", "doing._done", "doing._act", "senses", "nested", "together", "heard.heard"),
    *("whereabouts", "moments.Story", "moments.Moment", "acts.Beat", "acts.Told", "saying.Sayer", "moments.Frames"),
    *("nearly", "border", "found", "standing.Stood", "protocols.KnowsItsLimits", "protocols.KnowsItsWords"),
    *("folder.Glance", "schema.Made"),
)
"""MODULE, or MODULE.NAME, as they were."""
STAY: Mapping[str, str] = MappingProxyType(
    {
        "checks": "now of three packages, each says what it checks: a run's questions, a drawing, an archive's report",
        "objects": "now `katha.intake.objects`, which reads objects out of a text; blobs are in `blob_store`",
    }
)
"""Why one that is left in the core stays."""
SENTENCES = (
    "Refuse a report in which something that steered is about to measure",
    "Whether the clause has somebody act",
    "Have numpy's BLAS work alone",
    "Whom and what pronouns mean",
    "What of where and when stands in such a sentence",
    "as it is told of. load: what the station is given",
    "Have workers measure the boards, told of by their names",
    "the bytes of this process's device that are taken, by whomever",
    "What is left of a word that an earlier sentence had",
    "Whether a deed is told but once",
    "What a section needs of a row, what a rater may judge once only",
    "What it counts how surely an event is seen at all",
    "How much larger than usual a thing is",
    "For so many frames a process of its own is worth its beginning",
    "Have a causal language model take its loss",
    "leave with 1 where one has no board or lacks answers",
    "Have the system's requests to end heard",
    "whoever chose is no fair judge of the choice",
    "a folder of pictures with speaking names",
    "sentences that tell something to see",
)


def defined(path: Path) -> set[str]:
    """Return the names of a module's classes, functions and methods."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds)}


def names_left() -> list[str]:
    """Return the audit's names that the core still has."""
    modules: dict[str, list[Path]] = {}
    for module, path in library(CORE).items():
        modules.setdefault(module.rpartition(".")[2], []).append(path)
    left = []
    for old in NAMES:
        module, _, name = old.partition(".")
        if any(not name or name in defined(path) for path in modules.get(module, [])):
            left.append(old)
    return left


def sentences_left() -> Iterator[str]:
    """Yield PATH:LINE: SENTENCE of each of the audit's sentences in the core and its documents."""
    # CONTRIBUTING has them in its list of what not to write.
    kinds = ("*.py", "*.md", ":!sketch", ":!CONTRIBUTING.md")
    listed = subprocess.run(["git", "ls-files", *kinds], cwd=ROOT, capture_output=True, text=True)
    for path in (ROOT / name for name in listed.stdout.splitlines()):
        if path == Path(__file__) or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        for sentence in SENTENCES:
            found = re.search(r"\s+".join(map(re.escape, sentence.split())), text)
            if found is not None:
                yield f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}: {sentence}"


def main() -> int:
    """Print what is left, with its reason."""
    left, sentences = names_left(), list(sentences_left())
    for old in left:
        print(f"{old}: {STAY.get(old, 'left, and no reason is given')}")
    for old in sorted(set(STAY) - set(left)):
        print(f"{old}: gone, and a reason is still given")
    print(*sentences, sep="\n", end="\n" if sentences else "")
    print(f"{len(left)} of {len(NAMES)} names and {len(sentences)} of {len(SENTENCES)} sentences are left.")
    return int(set(left) != set(STAY) or bool(sentences))


if __name__ == "__main__":
    sys.exit(main())
