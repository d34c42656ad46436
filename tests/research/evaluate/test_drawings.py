"""Pictures are well-formed, hold every figure, and stay within their frame."""

import math
from xml.etree import ElementTree

from discreet.research.evaluate.drawings import WIDTH, Bar, bars, curve


def numbers(picture: ElementTree.Element, tag: str, attribute: str) -> list[float]:
    return [float(one.attrib[attribute]) for one in picture.iter(tag)]


def test_bars_show_means_and_intervals() -> None:
    many = [
        Bar("ours <1>", 0.5, 0.4, 0.6, main=True),
        Bar("b", 0.2, 0.2, 0.2),
        Bar("unknown", math.nan, math.nan, math.nan),
        Bar("no interval", 0.3, math.nan, math.nan),
    ]
    picture = ElementTree.fromstring(bars(many))
    text = [one.text for one in picture.iter("text")]
    assert "ours <1>" in text
    assert "0.500" in text
    assert "unknown" not in text
    centres = numbers(picture, "circle", "cx")
    assert len(centres) == 3
    assert centres[1] < centres[2] < centres[0]
    assert all(0 <= value <= WIDTH for value in centres + numbers(picture, "line", "x2"))


def test_a_curve_goes_from_most_to_least_protected() -> None:
    points = [(None, 0.7, 0.6, 0.8), (4.0, 0.6, 0.5, 0.7), (0.5, 0.3, 0.2, 0.4)]
    picture = ElementTree.fromstring(curve(points, xlabel="epsilon"))
    text = [one.text for one in picture.iter("text")]
    assert text.index("0.5") < text.index("4") < text.index("off")
    across, down = numbers(picture, "circle", "cx"), numbers(picture, "circle", "cy")
    assert across == sorted(across)
    assert down == sorted(down, reverse=True)


def test_nothing_known_is_still_a_picture() -> None:
    assert ElementTree.fromstring(bars([])).tag == "svg"
    assert ElementTree.fromstring(curve([], xlabel="x")).tag == "svg"
    same = [(1.0, 0.5, 0.5, 0.5)]
    assert ElementTree.fromstring(curve(same, xlabel="x")).tag == "svg"
