"""This commit and the one before it, side by side on one store, as during any upgrade."""

import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest

from discreet.state.embedded import EmbeddedStore
from discreet.state.stores import SCHEMA
from tests.end_to_end.servers import CALL_SECONDS, MAIN, Server, environment, private, serving
from tests.requirements import REQUIREMENTS
from tests.waiting import PATIENCE

PROGRAM = (sys.executable, "-P", "-c", MAIN)


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the service of the commit before this one."""
    root = REQUIREMENTS["history"].find()
    assert root is not None
    folder = tmp_path_factory.mktemp("older")
    archive = subprocess.run(
        ["git", "-C", str(root), "archive", "HEAD~1", "service"],
        check=True,
        capture_output=True,
        timeout=PATIENCE,
    ).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    assert str(folder) in where(folder / "service")
    return folder


@pytest.fixture(scope="module")
def both(
    older: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Server] | None]:
    """Start the two; the older one uses the store of the newer one. None if it may not."""
    data = tmp_path_factory.mktemp("newer")
    with serving(data) as new:
        if schema_of(older / "service") != SCHEMA:
            refuses_to_start(older, new)
            yield None
            return
        with serving(
            older / "data",
            "--store",
            EmbeddedStore(data).url,
            program=PROGRAM,
            PYTHONPATH=str(older / "service"),
        ) as old:
            yield new, old


def refuses_to_start(folder: Path, beside: Server) -> None:
    """See that this version does not begin on the other's store, says why, and harms nobody."""
    words = ["--store", EmbeddedStore(beside.data).url, "--data", str(folder / "data")]
    refused = subprocess.run(
        [*PROGRAM, "serve", "--port", "0", *words],
        env=environment(PYTHONPATH=str(folder / "service")),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert refused.returncode == 2, refused.stderr
    said = refused.stderr.splitlines()[-1]
    assert f"of schema {SCHEMA}" in said, refused.stderr
    assert f"reads schema {schema_of(folder / 'service')}" in said
    assert "Traceback" not in refused.stderr
    beside.put("films")
    recommend(beside)


@pytest.mark.needs("history")
def test_another_layout_of_the_store_is_refused_in_a_sentence(older: Path, tmp_path: Path) -> None:
    """The version before this one, made to read and write an older and a newer layout."""
    with serving(tmp_path / "newer") as new:
        for schema in (SCHEMA - 1, SCHEMA + 1):
            other = tmp_path / str(schema)
            shutil.copytree(older / "service", other / "service")
            module = other / "service/discreet/state/stores.py"
            text = re.sub(r"(?m)^SCHEMA = \d+$", f"SCHEMA = {schema}", module.read_text())
            module.write_text(text)
            refuses_to_start(other, new)


def schema_of(service: Path) -> int:
    """Return the layout of the store that a version reads and writes."""
    found = re.search(
        r"^SCHEMA = (\d+)$", (service / "discreet/state/stores.py").read_text(), re.MULTILINE
    )
    assert found is not None
    return int(found.group(1))


def where(service: Path) -> str:
    """Return the file from which that program imports the package: not ours."""
    words = [sys.executable, "-P", "-c", "import discreet; print(discreet.__file__)"]
    found = subprocess.run(
        words,
        env={"PYTHONPATH": str(service)},
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return found.stdout


def recommend(server: Server, **fields: Any) -> dict[str, Any]:
    body = {"recommender": "films", "client": "ada", "context": [0.2, 0.8], **fields}
    answer = server.client.post("/recommend", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.needs("history")
def test_two_versions_share_recommenders_ledgers_tokens_and_keys(
    both: tuple[Server, Server] | None,
) -> None:
    if both is None:
        return  # the older one was refused in a sentence, and the newer one went on
    new, old = both
    for writer, reader in (both, (old, new)):
        writer.put("films", privacy=private(1.0, 20.0), items=["a", "b"])
        assert reader.client.post("/recommenders/films/items", json={"items": ["c"]}).is_success
        shown = [server.client.get("/recommenders/films").json() for server in both]
        assert shown[0] == shown[1]
        assert [item["id"] for item in shown[0]["items"]] == ["a", "b", "c"]
        answer = recommend(writer, client="bob")
        feedback = {"recommendation_id": answer["recommendation_id"], "reward": 1.0}
        assert reader.client.post("/feedback", json=feedback).json()["duplicate"] is False
        assert writer.client.post("/feedback", json=feedback).json()["duplicate"] is True
        again = [recommend(server, client="eve", event_id=writer.url) for server in both]
        assert again[0] == again[1]
    told = [recommend(both[count % 2])["personalised"] for count in range(40)]
    assert 0 < sum(told) < 40
    assert told == sorted(told, reverse=True)
    assert new.budget("films", "ada") == old.budget("films", "ada") == sum(told)


@pytest.mark.needs("history")
def test_a_key_of_one_version_opens_the_other(both: tuple[Server, Server] | None) -> None:
    if both is None:
        return
    for maker, other in (both, (both[1], both[0])):
        store = ["--data", str(maker.data)]
        if maker is both[1]:
            store += ["--store", EmbeddedStore(both[0].data).url]
        made = command(maker, "keys", "create", "--label", "shop", "--scope", "serve", *store)
        answer = httpx.post(
            other.url + "/recommend",
            json={"recommender": "nothing", "client": "x", "context": [0.0]},
            headers={"Authorization": f"Bearer {made}"},
            timeout=CALL_SECONDS,
        )
        assert answer.status_code == 404, answer.text


def command(server: Server, *words: str) -> str:
    service = server.data.parent / "service"
    variables = {"PYTHONPATH": str(service)} if service.exists() else {}
    found = subprocess.run(
        [sys.executable, "-P", "-c", MAIN, *words],
        env={"PATH": "/usr/bin:/bin", **variables},
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return found.stdout.strip()
