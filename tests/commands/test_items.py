"""`discreet items` against a running server with several workers."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.cli import main
from discreet.commands import items
from tests.end_to_end.servers import KEY, Server, document, serving
from tests.ports import free_port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("items")) as running:
        yield running


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(KEY + "\n")
    return path


def test_a_catalogue_goes_there_and_back(
    server: Server,
    key_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(items, "_PAGE_LINES", 7)
    server.client.put("/recommenders/shop", json=document(items=["old"]))
    where = ("--recommender", "shop", "--url", server.url, "--key-file", str(key_file))
    catalogue = [{"id": f"item/{number}", "title": f"Item {number}"} for number in range(40)]
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(item) + "\n" for item in catalogue))
    assert main(["items", "import", str(source), *where]) == 0
    assert "40 added, 0 changed, 0 unchanged, 0 refused" in capsys.readouterr().out
    assert main(["items", "import", str(source), *where]) == 0
    assert "0 added, 0 changed, 40 unchanged, 0 refused" in capsys.readouterr().out
    for name in ("out.jsonl", "out.csv"):
        target = tmp_path / name
        assert main(["items", "export", str(target), *where]) == 0
        assert "41 items" in capsys.readouterr().out
        assert main(["items", "import", str(target), *where, "--from-line", "9"]) == 0
        assert "0 added, 0 changed" in capsys.readouterr().out
    assert main(["items", "export", *where]) == 0
    exported = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert exported == [{"id": "old"}, *catalogue]


def test_wrong_lines_are_named_by_the_files_own_numbers(
    server: Server,
    key_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(items, "_PAGE_LINES", 2)
    server.client.put("/recommenders/wrong", json=document(items=[]))
    where = ("--recommender", "wrong", "--url", server.url, "--key-file", str(key_file))
    source = tmp_path / "in.jsonl"
    source.write_text('"a"\n\n"b"\n{"id": ""}\n"c"\n{"id": "d", "categories": ["x"]}\n')
    assert main(["items", "import", str(source), *where]) == 1
    told = capsys.readouterr()
    assert "3 added, 0 changed, 0 unchanged, 2 refused" in told.out
    assert "line 4: id: " in told.err
    assert "line 6: categories: not supported by p-dap" in told.err


def test_what_stops_an_import_is_said_with_where_to_go_on(
    server: Server, key_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('"a"\n')
    gone = ("--recommender", "gone", "--url", server.url)
    assert main(["items", "import", str(source), *gone, "--key-file", str(key_file)]) == 2
    told = capsys.readouterr().err
    assert "no recommender of that name" in told
    assert "--from-line 1" in told
    key_file.write_text("not a key")
    assert main(["items", "export", *gone, "--key-file", str(key_file)]) == 2
    assert main(["items", "export", *gone, "--key-file", str(tmp_path / "none")]) == 2
    assert "--key-file" in capsys.readouterr().err


def test_a_key_may_come_from_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISCREET_API_KEY", raising=False)
    nobody = ("--recommender", "x", "--url", f"http://127.0.0.1:{free_port()}")
    assert main(["items", "export", *nobody]) == 2
    assert "--key-file: is needed" in capsys.readouterr().err
    monkeypatch.setenv("DISCREET_API_KEY", KEY)
    monkeypatch.setattr(items, "_PATIENCE", items.Retries(tries=1))
    assert main(["items", "export", *nobody]) == 2
    assert "cannot be reached" in capsys.readouterr().err
