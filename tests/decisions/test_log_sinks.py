"""Where decisions are written to: files that go in time, a stream, standard output."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from discreet.decisions.log_sinks import LogFiles, LogStream, StandardOutput
from discreet.families.contract import Recommender
from discreet.state.memory import MemoryStore
from tests.contracts.samples import build
from tests.decisions.conftest import Clock

pytestmark = pytest.mark.anyio

HOUR, DAY = 3_600, 86_400


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def films() -> Recommender[Any]:
    return build("p-dap", log={"to": "stream", "keep": "1d"})


async def test_files_are_by_hour_and_for_the_owner_only(
    tmp_path: Path, films: Recommender[Any], clock: Clock
) -> None:
    folder = tmp_path / "decisions"
    files = LogFiles(folder, clock)
    await files.write(films, "2d", [b"1", b"2"])
    await files.write(films, "2d", [b"3"])
    (path,) = folder.iterdir()
    assert path.name == f"sample.20270115T08.2d.{os.getpid()}.jsonl"
    assert path.read_bytes() == b"1\n2\n3\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    clock.now += HOUR
    await files.write(films, "2d", [b"4"])
    assert len(list(folder.iterdir())) == 2
    assert await files.forget(films, "whoever") == 0


async def test_files_go_when_their_time_is_over_whatever_the_document_says_by_then(
    tmp_path: Path, films: Recommender[Any], clock: Clock
) -> None:
    files = LogFiles(tmp_path / "none yet", clock)
    await files.tidy([])
    files = LogFiles(tmp_path, clock)
    (tmp_path / "somebody's.jsonl").touch()
    await files.write(films, "2d", [b"1"])
    await files.write(films, "12h", [b"2"])
    clock.now += 13 * HOUR
    await files.tidy([])
    assert [name.split(".")[2] for name in names(tmp_path)[:-1]] == ["2d"]
    clock.now += 2 * DAY - 13 * HOUR - 1
    await files.tidy([])
    assert len(names(tmp_path)) == 2
    clock.now += HOUR + 1
    await files.tidy([])
    assert names(tmp_path) == ["somebody's.jsonl"]


async def test_a_stream_forgets_a_client_and_old_lines(
    films: Recommender[Any], clock: Clock
) -> None:
    store = MemoryStore(clock=clock)
    stream = LogStream(store)
    many = [json.dumps({"client": f"c{n % 3}", "n": n}).encode() for n in range(2_500)]
    await stream.write(films, "1d", many)
    assert await stream.forget(films, "c1") == 833
    assert await stream.forget(films, "c1") == 0
    left = await store.read_stream(stream=films.decision_stream, most=5_000)
    assert {json.loads(line)["client"] for _, line in left} == {"c0", "c2"}
    assert len(left) == 2_500 - 833
    clock.now += DAY + 1
    await stream.tidy([films])
    assert await store.read_stream(stream=films.decision_stream) == []


async def test_standard_output_has_lines(
    films: Recommender[Any], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    out = StandardOutput()
    await out.write(films, "1d", [b"1", b"2"])
    await out.tidy([films])
    assert await out.forget(films, "whoever") == 0
    assert capfdbinary.readouterr().out == b"1\n2\n"
