"""What rows say about who asked, for each family."""

import json

import pytest

from discreet.errors import InvalidArgument
from discreet.families.questions import Sparse
from discreet.families.registration import read_document
from discreet.research.evaluate.described import Described, described_by
from discreet.research.evaluate.rows import LogRow

NAMED = {
    "fields": {
        "age": {"type": "number", "range": [0, 100], "required": True},
        "land": {"type": "category", "values": ["CH", "DE"]},
        "member": {"type": "boolean"},
    }
}


def described(algorithm: str, **fields: object) -> Described:
    return described_by(read_document({"algorithm": algorithm, "items": [], **fields}))


def row(**cells: object) -> LogRow:
    return LogRow("log.csv line 2", cells)


def test_named_fields_in_columns_or_json_are_the_same() -> None:
    contexts = described("contextual", context=NAMED)
    text = {"context.age": "50", "context.land": "CH", "context.member": "true"}
    assert contexts.columns(text) == list(text)
    number = contexts.add(row(**text))
    said = {"age": 50, "land": "CH", "member": True}
    assert contexts.add(row(context=json.dumps(said))) == number
    assert contexts.add(row(context=said)) == number
    assert contexts.fields(number) == {"context": said}
    assert contexts.features([number]).shape == (1, 1 + 3 + 1)
    missing = contexts.add(row(**{"context.age": "50", "context.land": ""}))
    assert contexts.fields(missing) == {"context": {"age": 50}}


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"context.age": "old"}, "line 2, column context.age: must be a number"),
        ({"context.land": "CH"}, "column context.age: is required"),
        ({"context": '{"ages": 1}'}, "unknown field 'ages'"),
        ({"context": "[1]"}, "must be an object"),
        ({"context": "{"}, "must be JSON"),
        ({"context": {"age": [1]}}, "column context.age: must be a number"),
        ({"context": {"age": 1, "land": {"a": 1}}}, "column context.land: must be a string"),
    ],
)
def test_contexts_are_checked_as_a_requests_would_be(
    cells: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        described("contextual", context=NAMED).add(row(**cells))


def test_vectors_may_be_lists() -> None:
    contexts = described("p-dap", context={"dimensions": 2})
    number = contexts.add(row(context="[0, 0.5]"))
    assert contexts.fields(number) == {"context": (0.0, 0.5)}
    assert contexts.features([number, number]).tolist() == [[0, 0.5]] * 2
    with pytest.raises(InvalidArgument, match="must be a list of 2 numbers"):
        contexts.add(row(context="[0]"))
    with pytest.raises(InvalidArgument, match="list of numbers"):
        contexts.add(row(context='["a", "b"]'))
    for wrong in ([10**400, 0], [True, 0], [1.5, 0], [-1, 0], [float("nan"), 0]):
        with pytest.raises(InvalidArgument, match="column context"):
            contexts.add(row(context=wrong))
    assert described("p-dap", context={"dimensions": 300}).features([]).shape == (0, 0)


def test_sparse_features_of_clients() -> None:
    clients = described("mirror-descent", features={"clients": 10, "items": 5})
    assert clients.columns({}) == ["features"]
    number = clients.add(row(features='{"indices": [1, 4], "values": [1, 0.5]}'))
    assert clients.fields(number) == {"features": Sparse((1, 4), (1.0, 0.5))}
    assert clients.fields(clients.add(row(features="[0, 1, 0, 0, 0.5]"))) == clients.fields(number)
    assert clients.fields(clients.add(row(features=""))) == {}
    for wrong in (
        '{"indices": [4, 1], "values": [1, 1]}',
        '{"indices": [1]}',
        "3",
        f"[1{'0' * 400}]",
    ):
        with pytest.raises(InvalidArgument, match="column features"):
            clients.add(row(features=wrong))


def test_fclub_needs_to_know_who_came() -> None:
    clients = described("fclub", role="local", dimensions=2)
    assert clients.columns({}) == ["client"]
    assert clients.fields(clients.add(row(client="x"))) == {}
    with pytest.raises(InvalidArgument, match="column client: is missing"):
        clients.add(row())


@pytest.mark.parametrize(
    ("algorithm", "fields", "reason"),
    [
        ("p-rec", {"objects": 2, "horizon": 5, "peers": 3}, "votes"),
        ("collaborative", {}, "profiles"),
        ("fclub", {"role": "global", "dimensions": 2}, "local server"),
    ],
)
def test_what_a_log_cannot_judge_is_refused_with_the_reason(
    algorithm: str, fields: dict[str, object], reason: str
) -> None:
    with pytest.raises(InvalidArgument, match=reason):
        described(algorithm, **fields)
