"""One record of the store that cannot be read: only its recommender or its key suffers.

Every damage is done behind the service's back, to a real store under a real server. It is looked at
by workers that run, by workers that begin afterwards, and by a server that starts.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from discreet.decisions.keys import digest_of
from discreet.decisions.services import LEASE_SECONDS
from discreet.families.registration import read_stored
from discreet.state.keys import StoreKeys
from tests.end_to_end.servers import (
    CALL_SECONDS,
    Server,
    command,
    document,
    model_key,
    serving,
)
from tests.state.servers import Server as Valkey
from tests.state.servers import valkey
from tests.waiting import wait_for

KEYS = StoreKeys()
NESTED = b"[" * 200_000
"""Deeper than any reader of JSON goes."""
LIST = "redis.call('DEL', KEYS[1]) return redis.call('LPUSH', KEYS[1], 'x')"
VERSION = (7).to_bytes(8, "big")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    folder = tmp_path_factory.mktemp("store")
    with valkey(folder / "valkey", appendonly="yes", appendfsync="always") as running:
        yield running


@pytest.fixture(scope="module")
def server(store: Valkey, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("data")
    with serving(data, "--store", store.url) as running:
        running.put("songs")
        yield running


def write(store: Valkey, name: bytes, content: bytes) -> None:
    """Put a document where another version, or an accident, might have put it."""
    store.do("HSET", KEYS.documents, name, content)
    store.do("INCR", KEYS.epoch)


def written(store: Valkey, name: str) -> bytes:
    found: bytes = store.do("HGET", KEYS.documents, f"recommender/{name}")
    return found


def ask(server: Server, recommender: str, key: str | None = None) -> httpx.Response:
    """Ask over a connection of its own: whichever worker takes it."""
    return httpx.post(
        server.url + "/recommend",
        json={"recommender": recommender, "client": "ada", "context": [0.2, 0.8]},
        headers={"Authorization": f"Bearer {key or server.key}"},
        timeout=CALL_SECONDS,
    )


def record(**changes: Any) -> Callable[[bytes], bytes]:
    """Return what changes fields of a record, or of its document (`document__name`)."""

    def change(content: bytes) -> bytes:
        fields = json.loads(content)
        for name, value in changes.items():
            *above, last = name.split("__")
            holder = fields
            for step in above:
                holder = holder[step]
            holder[last] = value
        return json.dumps(fields).encode()

    return change


UNREADABLE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "newer": (record(schema=99), "newer version"),
    "torn": (lambda content: content[: len(content) // 2], "damaged"),
    "not-text": (lambda _: b"\xff\xfe\x00", "damaged"),
    "nested": (lambda _: NESTED, "damaged"),
    "a-list": (lambda _: b"[]", "damaged"),
    "slot": (record(slots__a=2**70), "damaged"),
    "infinite": (record(next_slot=float("inf")), "damaged"),
    "no-slots": (record(slots={}), "damaged"),
    "short": (record(generation="00"), "damaged"),
    "algorithm": (record(document__algorithm="later"), "algorithm is not known"),
    "promise": (record(document__privacy__windows=30), "cannot keep a promise"),
    "impossible": (record(document__context={"dimensions": -1}), "context.dimensions"),
}


MODELS: dict[str, Callable[[Valkey, bytes], Any]] = {
    "model-of-garbage": lambda store, key: store.do("SET", key, VERSION + b"x" * 60),
    "model-cut-short": lambda store, key: store.do("SET", key, VERSION + b"x"),
    "model-without-version": lambda store, key: store.do("SET", key, b"abc"),
    "model-of-another-kind": lambda store, key: store.do("EVAL", LIST, 1, key),
}


def seen_by_all() -> None:
    """Return once no worker may still answer from before the last write: its lease has lapsed."""
    time.sleep(2 * LEASE_SECONDS)


def write_records(store: Valkey, server: Server) -> None:
    """Put a record of every kind of damage beside two that are sound, and damaged models."""
    server.put("films")
    sound = written(store, "films")
    for name, (change, _) in UNREADABLE.items():
        write(store, f"recommender/{name}".encode(), change(sound))
    models = {}
    for name in MODELS:
        models[name] = record(generation=os.urandom(8).hex())(sound)
        write(store, f"recommender/{name}".encode(), models[name])
    seen_by_all()
    assert all(ask(server, name).is_success for name in MODELS)
    for name, damage in MODELS.items():
        damage(store, KEYS.blob(model_key(read_stored(models[name]).generation)))


def others_serve(server: Server, unreadable: int) -> None:
    """See that what is sound is served by whichever worker, and that readiness tells the rest."""
    for _ in range(6):
        assert ask(server, "songs").status_code == 200
        ready = httpx.get(server.url + "/health/ready", timeout=CALL_SECONDS)
        assert ready.status_code == 200, ready.text
        assert ready.json() == {"status": "ok"} | ({"unreadable": unreadable} if unreadable else {})


def refused(server: Server, name: str, reason: str) -> None:
    for _ in range(3):
        answer = ask(server, name)
        assert answer.status_code == 503, answer.text
        problem = answer.json()
        assert problem["type"] == "urn:discreet:problem:unreadable-recommender"
        assert reason in problem["detail"], problem
        assert "PUT it anew" in problem["detail"]
    listed = server.client.get("/recommenders").json()
    assert name not in listed["recommenders"]
    assert reason in {one["name"]: one["reason"] for one in listed["unreadable"]}[name]
    said = [
        line for line in server.output.splitlines() if f"recommender {name} is not served" in line
    ]
    assert said
    assert reason in said[0]


def new_workers(server: Server) -> None:
    """Let workers begin that have never seen what stood there before."""
    before = set(server.workers)
    server.process.send_signal(signal.SIGHUP)
    wait_for("new workers", lambda: len(server.workers) == 2 and not before & set(server.workers))
    server.wait_until_ready()


def test_a_record_that_cannot_be_read_harms_its_recommender_only(
    server: Server, store: Valkey
) -> None:
    write_records(store, server)
    for name, (_, reason) in UNREADABLE.items():
        refused(server, name, reason)
    others_serve(server, len(UNREADABLE))
    # Workers that hold a model go on with it, and the releases of others go on.
    before = server.client.get("/recommenders/songs/guarantee").json()["release"]
    wait_for(
        "a release of songs",
        lambda: (
            ask(server, "songs").is_success
            and server.client.get("/recommenders/songs/guarantee").json()["release"] > before
        ),
    )
    for name in MODELS:
        assert ask(server, name).status_code == 200
    new_workers(server)
    for name in MODELS:
        refused(server, name, "released model")
    for name, (_, reason) in UNREADABLE.items():
        refused(server, name, reason)
    others_serve(server, len(UNREADABLE) + len(MODELS))
    for place, name in enumerate((*UNREADABLE, *MODELS)):
        if place % 2:
            answer = server.client.put(f"/recommenders/{name}", json=document())
            assert answer.status_code == 201, answer.text
            assert ask(server, name).status_code == 200
        else:
            assert server.client.delete(f"/recommenders/{name}").status_code == 204
            assert ask(server, name).status_code == 404
    others_serve(server, 0)
    assert server.client.get("/recommenders").json()["unreadable"] == []


def test_a_field_of_a_newer_version_is_carried_along(server: Server, store: Valkey) -> None:
    server.put("films")
    change = record(novelty=1, document__novelty={"deep": 2})
    write(store, b"recommender/films", change(written(store, "films")))
    new_workers(server)
    for _ in range(6):
        assert ask(server, "films").status_code == 200
    assert server.client.post("/recommenders/films/items", json={"items": ["e"]}).is_success
    fields = json.loads(written(store, "films"))
    assert (fields["novelty"], fields["document"]["novelty"]) == (1, {"deep": 2})


EXPERIMENT = {"traffic": {"arm": 1.0}}
EXPERIMENTS = {
    "newer": b'{"schema": 99, "traffic": {"arm": 1.0}}',
    "torn": b'{"traffic": {"ar',
    "nested": NESTED,
    "a list": b"[]",
}


def test_an_experiment_that_cannot_be_read_harms_itself_only(server: Server, store: Valkey) -> None:
    server.put("arm", ledger="group")
    assert server.client.put("/experiments/shares", json=EXPERIMENT).is_success
    assert ask(server, "shares").status_code == 200
    # A field that is new and harmless: the older version goes on.
    newer = json.dumps({**EXPERIMENT, "novelty": 1}).encode()
    write(store, b"experiment/shares", newer)
    seen_by_all()
    assert ask(server, "shares").status_code == 200
    for content in EXPERIMENTS.values():
        write(store, b"experiment/shares", content)
        seen_by_all()
        refused(server, "shares", "it is an experiment")
        others_serve(server, 1)
        shown = server.client.get("/experiments/shares")
        assert shown.status_code == 503, shown.text
        server.put("passing")
        assert server.client.delete("/recommenders/passing").status_code == 204
    assert server.client.put("/experiments/shares", json=EXPERIMENT).is_success
    assert ask(server, "shares").status_code == 200
    assert server.client.delete("/recommenders/arm").status_code == 422
    write(store, b"experiment/shares", NESTED)
    assert server.client.delete("/experiments/shares").status_code == 204
    assert server.client.delete("/recommenders/arm").status_code == 204
    others_serve(server, 0)


KEY_RECORDS = {
    "newer": b'{"label": "x", "scopes": ["serve"], "schema": 99}',
    "torn": b'{"label": "x", "sco',
    "nested": NESTED,
    "not text": b"\xff\xfe",
    "a number": b"7",
}


def write_keys(store: Valkey) -> None:
    for name, content in KEY_RECORDS.items():
        write(store, b"key/" + digest_of(f"key {name}").encode(), content)
    write(store, b"\xff/not a name", b"{}")
    seen_by_all()


def told(server: Server, store: Valkey, *words: str) -> str:
    done = command(*words, "--store", store.url, "--data", str(server.data))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_keys_that_cannot_be_read_open_nothing_and_shut_nobody_out(
    server: Server, store: Valkey
) -> None:
    made = told(server, store, "keys", "create", "--label", "shop", "--scope", "serve").strip()
    write_keys(store)
    for name in KEY_RECORDS:
        assert ask(server, "songs", made).status_code == 200
        assert ask(server, "songs", f"key {name}").status_code == 401
        assert f"the key {digest_of(f'key {name}')[:12]} opens nothing" in server.output
    new_workers(server)
    for _ in range(6):
        assert ask(server, "songs", made).status_code == 200
    assert ask(server, "songs", "key nested").status_code == 401
    listed = told(server, store, "keys", "list")
    assert listed.count("(unreadable)") == len(KEY_RECORDS)
    name = digest_of("key nested")
    told(server, store, "keys", "revoke", name[:12])
    assert not store.do("HEXISTS", KEYS.documents, f"key/{name}")


def test_a_server_starts_on_a_store_full_of_what_it_cannot_read(
    server: Server, store: Valkey, tmp_path: Path
) -> None:
    """As after a rollback: a file's recommender among them is left to whoever wrote it."""
    write_records(store, server)
    write_keys(store)
    file = tmp_path / "file.json"
    file.write_text(json.dumps({"recommenders": {"newer": document(), "fresh": document()}}))
    with serving(tmp_path / "data", "--store", store.url, "--config", str(file)) as other:
        for name in ("films", "songs", "fresh"):
            assert ask(other, name).status_code == 200
        for name in MODELS:
            refused(other, name, "released model")
        for name, (_, reason) in UNREADABLE.items():
            refused(other, name, reason)
        others_serve(other, len(UNREADABLE) + len(MODELS))
        assert "Traceback" not in other.output
        assert "the file's recommender newer was left as it is" in other.output
        assert other.client.delete("/recommenders/nested").status_code == 204
        assert other.client.put("/recommenders/model-cut-short", json=document()).is_success
        others_serve(other, len(UNREADABLE) + len(MODELS) - 2)
