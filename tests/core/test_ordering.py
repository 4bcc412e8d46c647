"""Names of pictures to the order of a board: who numbers how, what is refused, and nothing reordered without a word."""

from __future__ import annotations

import string
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from katha.ordering import Ordering, UnorderedNames, order_names

_UUID = "3f2504e0-4f89-41d3-9a0c-0305e82c330"
_IN_ORDER = {
    "plain": ["1.png", "2.png", "10.png", "3.png", "4.png", "5.png", "6.png", "7.png", "8.png", "9.png"],
    "from nought": ["0.png", "1.png", "2.png"],
    "mixed words": ["Scene1.jpg", "scene_2.webp", "SCENE 3.PNG"],
    "ComfyUI": ["ComfyUI_00001_.png", "ComfyUI_00002_.png", "ComfyUI_00003_.png"],
    "ComfyUI with gaps": ["ComfyUI_00012_.png", "ComfyUI_00015_.png", "ComfyUI_00016_.png"],
    "ComfyUI by prefix": ["scene1_00001_.png", "scene2_00001_.png", "scene3_00001_.png"],
    "webui": ["00001-1234567.png", "00002-99.png", "00003-1234568.png"],
    "webui with prompts": ["00017-3099.png-a fox.png", "00018-12-a crow.png", "00021-7-the end.png"],
    "Storyboarder": ["board-1-A1B2C.png", "board-2-ABCDE.png", "board-3-12345.png"],
    "Midjourney with scenes": [f"user_scene_{at}_a_fox_{_UUID}{at}_{4 - at}.png" for at in (1, 2, 3)],
    "camera": ["IMG_4501.JPG", "IMG_4503.JPG", "IMG_4507.JPG"],
    "time": ["Screenshot 2026-11-28 at 10.02.33.png", "Screenshot 2026-11-28 at 10.05.01.png"],
    "half days": [
        f"Screenshot 2026-11-28 at {at}.png" for at in ("9.02.33 AM", "10.02.33\u202fAM", "12.01.00 PM", "1.00.00 PM")
    ],
    "days in words": [
        f"ChatGPT Image {at}.png"
        for at in ("Nov 28, 2026, 11_02_33 AM", "Nov 28, 2026, 01_02_33 PM", "Dec 1, 2026, 01_00_00 AM")
    ],
    "time in German": ["Bildschirmfoto 2026-11-28 um 10.02.33.png", "Bildschirmfoto 2026-11-29 um 09.02.33.png"],
    "seed after": ["scene_1_seed_42.png", "scene_2_seed_7.png", "scene_3_seed_19.png"],
    "seed before": ["seed_9_scene_1.png", "seed_3_scene_2.png", "seed_5_scene_3.png"],
    "takes": ["shot1_take2.png", "shot2_take3.png", "shot3_take1.png"],
    "letters": ["shot_1A.png", "shot_1B.png", "shot_2A.png", "shot_2B.png", "shot_3A.png"],
    "some letters": ["1.png", "1b.png", "2.png", "3.png"],
    "letter before": ["A1.png", "A2.png", "B1.png"],
    "steps of ten": ["sc01_sh010.png", "sc01_sh020.png", "sc01_sh030.png"],
    "one in between": ["sh010.png", "sh020.png", "sh025.png", "sh030.png"],
    "scenes and shots": ["sc01_sh010.png", "sc01_sh020.png", "sc02_sh010.png", "sc02_sh020.png"],
    "one of three": ["panel_1_of_3.png", "panel_2_of_3.png", "panel_3_of_3.png"],
    "brackets": ["frame (1).png", "frame (2).png", "frame (3).png"],
    "copies": ["frame.png", "frame (1).png", "frame (2).png"],
    "second ones": ["frame.png", "frame 2.png", "frame 3.png"],
    "Devanagari": ["दृश्य_१.png", "दृश्य_२.png", "दृश्य_३.png"],
    "Arabic": ["مشهد ١.png", "مشهد ٢.png", "مشهد ٣.png"],
    "Chinese numerals": ["第一幕.png", "第二幕.png", "第三幕.png"],
    "full width": ["フレーム１.png", "フレーム２.png"],
    "circled": ["①.png", "②.png", "③.png"],
    "letters alone": ["frame_A.png", "frame_B.png", "frame_C.png"],
    "Roman": ["I.png", "II.png", "III.png", "IV.png", "V.png"],
    "words": ["one.png", "two.png", "three.png"],
    "ordinals": ["1st_panel.png", "2nd_panel.png", "3rd_panel.png"],
    "telling": ["01_the_lion_sleeps.png", "02_a_mouse_on_tram_12.png", "03_the_net.png"],
    "sizes": ["frame_1_512x768.png", "frame_2_512x512.png"],
    "hashes": ["1_ffa1b2c3d4.png", "2_00ff00aa.png", "3_deadbeef01.png"],
    "points": ["1.8.png", "1.9.png", "1.10.png"],
    "frames of a film": ["frame_0024.png", "frame_0048.png", "frame_0310.png"],
    "time and a drawn number": [f"2026-11-28_10-0{at}-33_{9999 - 3000 * at}.png" for at in (1, 2, 3)],
    "messages": ["IMG-20261128-WA0012.jpg", "IMG-20261128-WA0013.jpg"],
    "one of many": ["1_5.png", "2_5.png", "3_5.png"],
    "letter and take": ["shot-1A-take-2.png", "shot-1B-take-1.png", "shot-2A-take-4.png"],
    "an excerpt": ["page_12.png", "page_13.png"],
    "versions beside": ["scene1_v2.png", "scene2_v1.png", "scene3_v3.png"],
    "other formats": ["1.tif", "2.BMP", "3.gif", "4.mpo", "5.jfif", "6.tiff"],
}
_REFUSED = {
    "two numbers": (["1_3.png", "2_1.png", "3_2.png"], "two orders: by first number: .*1_3.png.* by second number"),
    "counter and scene": (["01_scene_3.png", "02_scene_1.png", "03_scene_2.png"], "by scene: .* by number"),
    "letter and number": (["A3.png", "B1.png", "C2.png"], "by letter: .* by number"),
    "two takes": (["shot1_take2.png", "shot1_take3.png", "shot2_take1.png"], "shot 1 is there twice: shot1_take2.png"),
    "two names": (["1.png", "Scene1.png", "2.png"], "is there twice: 1.png and Scene1.png"),
    "minutes and seconds": (["a 02_33.png", "a 02_50.png", "a 05_10.png"], "two orders"),
    "layers upside down": (["_0000_Layer 3.png", "_0001_Layer 2.png", "_0002_Layer 1.png"], "two orders"),
    "a gap": (["1.png", "2.png", "4.png"], "frame 3 is missing"),
    "a gap in tens": (["sh010.png", "sh020.png", "sh040.png"], "frame 30 is missing"),
    "one of five": (["panel_1_of_5.png", "panel_2_of_5.png"], "frame 3, 4, 5 is missing"),
    "no first": (["2.png", "3.png"], "frame 1 is missing"),
    "variants": ([f"user_a_fox_{_UUID}{at}_{4 - at}.png" for at in (1, 2, 3)], "which variant a picture is"),
    "takes alone": (["take1.png", "take2.png"], "which take a picture is"),
    "seeds": (["fox_1234567.png", "crow_7654321.png"], "look like seeds"),
}


def ordered(names: list[str], by: str | None = None) -> Ordering:
    mixed = list(names)
    Random(5).shuffle(mixed)
    found = order_names(mixed, by)
    assert found is not None
    return found


@pytest.mark.parametrize("kind", [kind for kind in _IN_ORDER if kind != "plain"])
def test_names_are_read_as_they_are_meant(kind: str) -> None:
    assert list(ordered(_IN_ORDER[kind]).names) == _IN_ORDER[kind]


def test_two_is_before_ten() -> None:
    assert list(ordered(_IN_ORDER["plain"]).names) == [f"{number}.png" for number in range(1, 11)]


@pytest.mark.parametrize("kind", _REFUSED)
def test_what_has_two_readings_or_a_gap_is_one_sentence(kind: str) -> None:
    names, words = _REFUSED[kind]
    with pytest.raises(UnorderedNames, match=words) as refused:
        ordered(names)
    assert refused.value.hint


def test_a_person_chooses_between_readings() -> None:
    assert ordered(["1_3.png", "2_1.png"], "last").names == ("2_1.png", "1_3.png")
    assert ordered(["1_3.png", "2_1.png"], "first").names == ("1_3.png", "2_1.png")
    assert ordered(_IN_ORDER["takes"], "take").names == ("shot3_take1.png", "shot1_take2.png", "shot2_take3.png")
    assert ordered(["b.png", "a10.png", "a2.png"], "names").names == ("a2.png", "a10.png", "b.png")
    with pytest.raises(UnorderedNames, match="'hat'") as refused:
        ordered(_IN_ORDER["takes"], "hat")
    assert "shot" in str(refused.value.hint)


def test_what_lies_beside_the_frames_is_left_out_and_named() -> None:
    beside = ["mask_1.png", "2_depth.png", "cover.png", "board-1-A1B2C-thumbnail.png", "thumb_1.png"]
    found = ordered(["1.png", "2.png", *beside, ".3.png", "3.txt"])
    assert (found.names, set(found.left_out)) == (("1.png", "2.png"), set(beside))
    assert found.told() == "1 1.png, 2 2.png (by number)"
    assert order_names(["image.png", "hat.png"]) is None
    assert order_names(["a fox.png", "i see.png"]) is None
    assert order_names([]) is None


# Folders as they are made: a board's names, by a program or a person, with what varies beside the place.

_PLACES = ("scene", "shot", "panel", "frame", "Szene", "plan", "page", "镜头", "")
_SEPARATORS = ("_", "-", " ", "")


@st.composite
def folders(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """The names of a board in order, and those names as a folder lists them."""
    count = draw(st.integers(2, 12))
    place, gap = draw(st.sampled_from(_PLACES)), draw(st.sampled_from(_SEPARATORS))
    step, width = draw(st.sampled_from(((1, 1), (1, 2), (1, 3), (10, 3)))), draw(st.integers(0, 4))
    digits = draw(st.sampled_from(("0123456789", "०१२३४५६७८९", "٠١٢٣٤٥٦٧٨٩", "０１２３４５６７８９")))
    prefix = draw(st.sampled_from(("", "fox_", "My Board-", "狐狸_", "kettle.")))
    beside = draw(st.sampled_from(("", "_seed_{}", "_take{}", "-v{}", "_cfg{}", " take {}")))
    values = draw(st.lists(st.integers(0, 99_999), min_size=count, max_size=count))
    ending = draw(st.sampled_from((".png", ".jpg", ".tif", ".WEBP")))
    names = []
    for at in range(1, count + 1):
        number = str(at * step[0]).zfill(max(step[1], width))
        written = number.translate(str.maketrans(string.digits, digits))
        names.append(f"{prefix}{place}{gap}{written}{beside.format(values[at - 1])}{ending}")
    return names, draw(st.permutations(names))


@settings(max_examples=60, deadline=None)
@given(folders())
def test_no_board_is_reordered_without_a_word(made: tuple[list[str], list[str]]) -> None:
    names, listed = made
    try:
        found = order_names(listed)
    except UnorderedNames:
        return
    assert found is None or list(found.names) == names


_SIGNS = st.sampled_from(
    [*"0123456789aAbBxXvV_- .()[]#", "scene", "take", "of", "第", "一", "١", "²", "Ⅳ", "\u0301", "🦊", _UUID]
)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(_SIGNS, min_size=1, max_size=8).map("".join), max_size=8),
    st.sampled_from([None, "first", "take"]),
)
def test_any_names_are_ordered_or_refused(stems: list[str], by: str | None) -> None:
    names = [f"{stem}.png" for stem in dict.fromkeys(stems)]
    try:
        found = order_names(names, by)
    except UnorderedNames:
        return
    if found is not None:
        assert len(set(found.names)) == len(found.names)
        assert set(found.names) | set(found.left_out) <= set(names)
