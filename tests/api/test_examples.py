"""Every example of the API reference is sent to a running server, and works."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from discreet.api import examples
from discreet.api.examples import NAMES, OperationExample, examples_for
from discreet.api.personalizer import KEY_HEADER
from discreet.api.reference import described_for
from discreet.app import create_app
from discreet.cli import main
from discreet.settings import Settings
from tests.end_to_end.servers import Server, serving

LATER = (
    "remove_experiment",
    "revoke_device",
    "erase",
    "verify_erasure",
    "remove_item",
    "revoke_key",
    "remove_recommender",
)
BESIDE: dict[str, Any] = {
    "all-songs": {"algorithm": "fclub", "role": "global", "dimensions": 2},
    "champion": {"algorithm": "p-dap", "context": {"dimensions": 2}, "ledger": "shop"},
    "challenger": {"algorithm": "p-dap", "context": {"dimensions": 2}, "ledger": "shop"},
    "menu": {
        "algorithm": "mirror-descent",
        "features": {"dimension": 4096, "most_nonzeros": 200},
        "personalizer": {},
        "reward": {"wait": "10m", "default": 0, "range": [0, 1]},
    },
}
"""Recommenders that some examples need beside their own."""
EARLIER = ("put_recommender", "make_round", "post_votes", "add_items", "recommend", "offer_code",
           "redeem_code", "forward",
           "personalizer_rank", "put_experiment")  # fmt: skip
"""What has to be sent before others, or after them; the rest goes in between."""


@cache
def openapi() -> dict[str, Any]:
    return create_app(Settings()).openapi()


def operations(algorithm: str) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Return method, path and description of every operation of a tab, by its id."""
    paths = described_for(openapi(), algorithm)["paths"]
    return {
        operation["operationId"]: (method, path, operation)
        for path, methods in paths.items()
        for method, operation in methods.items()
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("examples")) as running:
        for name, document in BESIDE.items():
            running.client.put(f"/recommenders/{name}", json=document).raise_for_status()
        yield running


@pytest.mark.parametrize("algorithm", ["all", *NAMES])
def test_every_operation_has_an_example(algorithm: str) -> None:
    for name, (_, _, operation) in operations(algorithm).items():
        for content in operation.get("requestBody", {}).get("content", {}).values():
            assert "example" in content, name
        for parameter in operation.get("parameters", ()):
            assert "example" in parameter or not parameter["required"], (name, parameter["name"])


@pytest.mark.parametrize("algorithm", NAMES)
def test_every_example_works(
    server: Server, algorithm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given: dict[str, Any] = {}
    keys = ("keys", "create", "--data", str(server.data), "--label", f"peer-{algorithm}")
    assert main([*keys, "--scope", "peer"]) == 0
    peer = capsys.readouterr().out.strip()
    found, known = operations(algorithm), examples_for(algorithm)
    middle = [name for name in found if name not in (*EARLIER, *LATER)]
    for name in [*EARLIER, *middle, *LATER]:
        if name not in found:
            continue
        method, path, operation = found[name]
        key = peer if operation["x-scopes"] == ["peer"] else server.key
        answer = send(server, method, path, operation, filled(known[name], given), key)
        if name == "explain" and algorithm in ("p-rec", "collaborative"):
            assert answer.status_code == 404  # and the example's description says so
            continue
        assert answer.is_success, (name, answer.status_code, answer.text)
        is_json = answer.content and "json" in answer.headers.get("content-type", "")
        take(name, answer.json() if is_json else {}, given)


def send(
    server: Server,
    method: str,
    path: str,
    operation: dict[str, Any],
    example: OperationExample,
    key: str,
) -> Any:
    places = {one["name"]: one["in"] for one in operation.get("parameters", ())}
    inside = {name: value for name, value in example.parameters.items() if places[name] == "path"}
    query = {name: value for name, value in example.parameters.items() if places[name] == "query"}
    body: dict[str, Any] = {"json": example.body}
    if operation["operationId"] == "import_items":
        body = {"content": example.body}
    elif example.body is None:
        body = {}
    return server.client.request(
        method.upper(),
        path.format_map(inside),
        params=query,
        headers={"Authorization": f"Bearer {key}", KEY_HEADER: key},
        **body,
    )


def filled(example: OperationExample, given: dict[str, Any]) -> OperationExample:
    """Return an example with what this server handed out in the place of <…>."""

    def fill(value: Any) -> Any:
        for placeholder in (examples.CERTIFICATE,):
            if value == placeholder:
                return given["certificate"]
        if isinstance(value, dict):
            return {name: fill(one) for name, one in value.items()}
        if isinstance(value, list):
            return [fill(one) for one in value]
        return given[value] if isinstance(value, str) and value.startswith("<") else value

    return OperationExample(fill(dict(example.parameters)), fill(example.body))


def take(name: str, answer: Any, given: dict[str, Any]) -> None:
    """Keep what the server handed out, for the examples that come later."""
    if name == "recommend":
        given[examples.RECOMMENDATION_ID] = answer["recommendation_id"]
    elif name == "offer_code":
        given[examples.CODE] = answer["code"]
    elif name == "redeem_code":
        given[examples.DEVICE] = answer["id"]
    elif name == "list_keys":
        given[examples.KEY_ID] = answer["keys"][0]["id"]
    elif name == "forward":
        given[examples.HANDLE] = answer["handle"]
    elif name == "erase":
        given["certificate"] = answer["certificate"]
        given[examples.SEAL] = answer["seal"]


def test_examples_name_operations_that_there_are() -> None:
    for algorithm in NAMES:
        assert set(examples_for(algorithm)) <= set(operations("all")), algorithm
    assert not (Path(examples.__file__).parent / "reference.py").exists()
