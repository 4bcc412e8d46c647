"""Presets and suites that installed packages offer, and the default, which is one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from katha import config
from katha.app.presets import choose_here
from katha.compass.modes import load_suite
from katha.config import Settings, load_preset, require_chosen, resolve, usual_preset
from katha.configs import config_names
from katha.errors import KathaError, UnknownPluginError, UsageError
from katha.installing import stand_in_line

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a distribution on the path that offers files: `presets={"NAME": "text"}`."""

    def put(name: str, **groups: Mapping[str, str]) -> None:
        place = tmp_path / name
        info = place / f"{name}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        lines = []
        for group, files in groups.items():
            folder = place / name / group
            folder.mkdir(parents=True)
            lines += [f"[katha.{group}]", *(f"{file} = {name}.{group}" for file in files)]
            for file, text in files.items():
                if text:
                    (folder / f"{file}.yaml").write_text(text)
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        monkeypatch.syspath_prepend(place)

    return put


@pytest.fixture
def nothing_offered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As where katha is installed alone: no package offers a preset."""
    monkeypatch.setattr(config, "offered", lambda group: ())
    config._usual_preset.cache_clear()
    yield
    config._usual_preset.cache_clear()


AMBER = """
default: true
planner: direct
planner_options: {about: more}
renderer: vector:paste
renderer_options: {eyes: false}
judges: {first_of: [none, "openai:x"]}
seeds: [7]
"""


def test_the_stand_in_offers_the_default() -> None:
    name, values = usual_preset()
    assert (name, set(values)) == ("embedded", {"planner", "renderer", "judges", "similarity"})
    assert (Settings().planner, Settings().renderer, Settings().judges) == ("rule", "sketch", ("sketch-reader",))
    assert (Settings().similarity, Settings().matching) == ("reader", "lemma-set")


def test_a_preset_of_a_package_is_one_like_the_others(install: Install) -> None:
    install("aside", presets={"quiet": "default: false\njudges: [none]\nmode: base\n"})
    assert "quiet" in config_names("presets")
    assert load_preset("quiet") == {"judges": ["none"], "mode": "base"}, "whether it is the default is no setting"
    assert resolve({}, preset="quiet", environment={}).judges == ("none",)
    assert Settings().judges == ("sketch-reader",)


def test_of_several_defaults_the_first_by_name_is_taken(install: Install) -> None:
    install("bees", presets={"zebra": "default: true\nplanner: oracle\n", "amber": AMBER})
    assert usual_preset()[0] == "amber"
    made = Settings()
    assert (made.planner, made.planner_options, made.renderer) == ("direct", {"about": "more"}, "vector:paste")
    assert (made.judges, made.seeds) == (("none",), (7,))
    assert made.similarity == "none", "what the default leaves open is the field's own"


def test_flag_then_preset_then_environment_then_default(install: Install) -> None:
    install("bees", presets={"amber": AMBER, "blue": "judges: [recorded]\n"})
    told = {"KATHA_JUDGES": "openai:y", "KATHA_SEEDS": "8"}
    found = resolve({}, environment={})
    assert (found.judges, found.seeds, found.renderer) == (("none",), (7,), "vector:paste")
    found = resolve({}, environment=told)
    assert (found.judges, found.seeds, found.renderer) == (("openai:y",), (8,), "vector:paste")
    found = resolve({}, preset="blue", environment=told)
    assert (found.judges, found.seeds) == (("recorded",), (8,))
    assert resolve({"judges": ("vllm:z",)}, preset="blue", environment=told).judges == ("vllm:z",)


def test_options_of_the_default_stay_with_whom_it_names(install: Install) -> None:
    install("bees", presets={"amber": AMBER})
    assert resolve({}, environment={}).renderer_options == {"eyes": False}
    assert resolve({"renderer": "flux:x"}, environment={}).renderer_options == {}
    assert resolve({}, environment={"KATHA_RENDERER": "flux:x"}).renderer_options == {}
    named = resolve({"renderer": "flux:x"}, environment={})
    assert (named.planner, named.planner_options) == ("direct", {"about": "more"})
    again = resolve({"seeds": (1,)}, base=Settings(renderer_options={}, renderer="vector:paste"))
    assert again.renderer_options == {}, "settings that are whole are taken as they are"


def test_a_broken_preset_is_named_when_it_is_asked_for_and_stops_nothing_else(install: Install) -> None:
    install("bees", presets={"aaa": "", "aab": "default: [\n"})
    assert usual_preset()[0] == "embedded"
    assert Settings().planner == "rule"
    with pytest.raises(UnknownPluginError, match=r"Preset 'aaa' of 'bees.presets' cannot be read"):
        load_preset("aaa")
    with pytest.raises(KathaError, match=r"Preset 'aab' of 'bees.presets' is not YAML"):
        load_preset("aab")


def test_a_preset_that_ships_cannot_be_replaced(install: Install) -> None:
    install("bees", presets={"flux": "planner: direct\n"})
    assert "first_of" in load_preset("flux")["planner"]


@pytest.mark.usefixtures("nothing_offered")
def test_without_a_default_nobody_is_chosen_and_it_is_said() -> None:
    made = Settings()
    assert (usual_preset(), made.planner, made.renderer, made.judges) == (("", {}), "", "", ())
    assert made.similarity == "none"
    assert made.with_plugins(planner="direct").judges == ()
    with pytest.raises(UsageError) as refused:
        require_chosen(made.with_plugins(planner="direct", judges=("none",)))
    assert str(refused.value) == (
        "No renderer is chosen, and none is installed that works without a model. Set a key (see `katha doctor`), "
        "name one with --renderer, or install the stand-in: " + stand_in_line() + "."
    )
    with pytest.raises(UsageError, match="No planner and no renderer and no judge is chosen"):
        require_chosen(made)
    require_chosen(made.with_plugins(planner="direct"), ("planner",))


def test_where_there_is_a_default_no_settings_are_without_a_judge() -> None:
    with pytest.raises(UsageError, match="give at least one judge, each once"):
        resolve({"judges": ()}, environment={})


def test_a_proposal_may_be_the_default_s() -> None:
    assert choose_here("planner", ["nobody-of-that-name", None]) is None
    assert resolve({}, preset="api", environment={}, choose=lambda name, proposed: proposed[-1]).planner == "rule"


@pytest.mark.usefixtures("nothing_offered")
def test_a_proposal_of_the_default_s_needs_a_default() -> None:
    with pytest.raises(UsageError) as refused:
        choose_here("planner", [None])
    assert stand_in_line() in str(refused.value)


def test_packages_add_their_rows_to_a_suite(install: Install) -> None:
    assert [row.name for row in load_suite("renderers").rows][-1] == "sketch"
    assert (load_suite("matching").baseline, load_suite("planners").baseline) == ("lemma_set", "direct")
    row = "rows:\n  mine: {mode: base, planner: direct}\n"
    install("bees", suites={"planners": row, "hive": f"about: Bees.\nbaseline: mine\n{row}", "renderers": "rows: 3\n"})
    names = [row.name for row in load_suite("planners").rows]
    assert names[0] == "direct", "the first row's questions are asked of all"
    assert {"rule", "mine"} <= set(names)
    assert [row.name for row in load_suite("hive").rows] == ["mine"]
    assert "sketch" in [row.name for row in load_suite("renderers").rows], "what is no suite adds nothing"
