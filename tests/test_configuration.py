"""The configuration file: nothing is guessed, and errors say where."""

from pathlib import Path

import pytest

from discreet.configuration import read
from discreet.errors import InvalidArgument

GOOD = """
server:
  port: 9000
recommenders:
  films:
    algorithm: p-dap
    items: [a, {id: b, hidden: true}]
    context: {dimensions: 2}
    privacy:
      answers:
        epsilon: 1
        budget: {epsilon: 10, delta: 1e-6}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "discreet.yaml"
    path.write_text(text)
    return path


def test_a_file_has_settings_and_recommenders(tmp_path: Path) -> None:
    found = read(written(tmp_path, GOOD))
    assert found.server == {"port": 9000}
    films = found.recommenders["films"]
    assert [(item.id, item.hidden) for item in films.items] == [("a", False), ("b", True)]
    assert films.privacy.answers.budget.delta == 1e-6


@pytest.mark.parametrize("text", ["", "# nothing\n", "recommenders:\n", "server:\n"])
def test_an_empty_file_says_nothing(tmp_path: Path, text: str) -> None:
    found = read(written(tmp_path, text))
    assert (found.server, found.recommenders) == ({}, {})


def test_items_may_stand_in_a_file_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "items.txt").write_text("# films\nOne\n\n  Two words \nThree\n")
    text = GOOD.replace("items: [a, {id: b, hidden: true}]", "items_file: items.txt")
    films = read(written(tmp_path, text)).recommenders["films"]
    assert [item.id for item in films.items] == ["One", "Two words", "Three"]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("server: [1]", "server"),
        ("- 1", "the file"),
        ("recomenders: {}", "recomenders"),
        ("recommenders: {1: {}}", "recommenders"),
        ("recommenders: {'a b': {}}", "recommenders.a b"),
        ("recommenders: {a: 3}", "recommenders.a"),
        (
            GOOD.replace("epsilon: 1\n", "epsilon: -1\n"),
            "recommenders.films.privacy.answers.epsilon",
        ),
        (
            GOOD.replace("epsilon: 1\n", "epsilom: 1\n"),
            "recommenders.films.privacy.answers.epsilom",
        ),
        (GOOD.replace("dimensions: 2", "dimensions: '2'"), "recommenders.films.context.dimensions"),
        (GOOD.replace("[a,", "[b,"), "recommenders.films"),
        (GOOD + "    items_file: x.txt\n", "recommenders.films.items_file"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_field(tmp_path: Path, text: str, where: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InvalidArgument) as caught:
        read(path)
    assert caught.value.argument == f"{path}: {where}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("server: {port: 1, port: 2}", "line 1"),
        ("server:\n  port: 1\n  port: 2\n", "line 3"),
        ("server: [", "line 1"),
        ("server: !!python/object/apply:os.getcwd []", "line 1"),
        ("a: &a [1]\n<<: *b\n", "line 2"),
    ],
)
def test_what_is_not_plain_yaml_is_refused_with_its_line(
    tmp_path: Path, text: str, line: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        read(written(tmp_path, text))
    assert line in caught.value.reason


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(InvalidArgument) as caught:
            read(path)
        assert caught.value.argument == str(path)
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidArgument, match="UTF-8"):
        read(binary)


def test_an_items_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    text = GOOD.replace("items: [a, {id: b, hidden: true}]", "items_file: none.txt")
    with pytest.raises(InvalidArgument, match="items_file"):
        read(written(tmp_path, text))
