"""Files that name services: read as they are, refused in a sentence."""

from pathlib import Path

import pytest

from discreet.errors import InvalidArgument
from discreet.hub import service_files
from discreet.hub.server import RecommendationServer

FILE = """
name: films
adapter: discreet
url: https://recommend.example/
recommender: films
key_file: films.key
"""


def test_a_discreet_server(tmp_path: Path) -> None:
    (tmp_path / "films.yaml").write_text(FILE)
    (tmp_path / "films.key").write_text("dk_1\n")
    assert service_files.read(tmp_path / "films.yaml") == (
        "films",
        RecommendationServer(url="https://recommend.example", recommender="films", key="dk_1"),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FILE.replace("adapter: discreet", "adapter: gorse"), "adapter"),
        (FILE.replace("recommender: films\n", ""), "recommender: Field required"),
        (FILE + "secret: x\n", "secret"),
        (FILE.replace("films.key", "none.key"), "none.key"),
        (FILE.replace("https", "http"), "must be https"),
        ("name: [", "is not YAML"),
        ("", "adapter"),
        ("- a", "the file"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "films.yaml").write_text(text)
    (tmp_path / "films.key").write_text("dk_1\n")
    with pytest.raises(InvalidArgument) as refused:
        service_files.read(tmp_path / "films.yaml")
    assert words in str(refused.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="cannot read"):
        service_files.read(tmp_path / "nowhere.yaml")
