"""`discreet store`: an empty store is begun aloud; one that lost something is accepted aloud."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.cli import main
from discreet.state.fence import EMPTIED
from discreet.state.keys import StoreKeys
from tests.state.servers import Server, valkey


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with valkey(tmp_path / "valkey") as running:
        yield running


def test_begun_lost_and_accepted(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--store", server.url, "--data", str(tmp_path / "data")]

    def store(*words: str) -> tuple[int, str]:
        code = main(["store", *words, *where])
        said = capsys.readouterr()
        return code, said.out + said.err

    code, said = store("status")
    assert (code, "discreet store init" in said) == (1, True)
    assert server.do("DBSIZE") == 0
    assert store("init") == (0, "the store can be used\n")
    assert store("init")[0] == store("status")[0] == 0
    server.do("FLUSHALL")
    for words in (("status",), ("init",)):
        code, said = store(*words)
        assert code > 0
        assert EMPTIED in said
    assert server.do("DBSIZE") == 0
    code, said = store("accept")
    assert (code, "budget" in said) == (2, True)
    code, said = store("accept", "--yes")
    assert code == 0
    identity = server.do("HGET", StoreKeys().identity, "identity")
    assert identity.hex() in said
    assert store("status")[0] == 0


def test_the_help_says_what_accepting_means(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["store", "--help"])
    said = capsys.readouterr().out
    assert "more than its" in said
    assert "Everything that was" in said
