"""A batch is read quickly where that cannot matter, and every entry has its own result."""

import json
from typing import Any

import pytest

from discreet.api.batches import BatchReader, FailedEntry, results_json, usable
from discreet.api.problems import Refused
from discreet.errors import InvalidArgument, StoreUnavailable
from discreet.families.questions import Candidate, Sparse
from tests.api.conftest import Caller
from tests.api.readers import read_feedback, read_recommend

pytestmark = pytest.mark.anyio

ONE = '{"recommender":"films","client":"ada","context":[0.5,0.25]}'
FULL: dict[str, Any] = {
    "recommender": "films",
    "client": "ada",
    "limit": 2,
    "candidates": [
        "a",
        {"id": "b", "features": [0.5]},
        {"id": "c", "features": {"indices": [0], "values": [1]}},
    ],
    "features": {"indices": [1, 4], "values": [0.5, 2]},
    "exclude": ["x"],
    "category": None,
}


def batch(*entries: str, name: str = "requests") -> bytes:
    return f'{{"{name}":[{",".join(entries)}]}}'.encode()


def shown(entry: Any) -> Any:
    return json.loads(entry.result) if isinstance(entry, FailedEntry) else entry


def statuses(entries: list[Any]) -> list[int]:
    return [shown(each)["status"] if isinstance(each, FailedEntry) else 200 for each in entries]


# One reading


@pytest.mark.parametrize(
    "entry",
    [
        '{"recommender":"films","client":"ada","client":"bob"}',
        '{"recommender":"films","client":"ada","client":"ada"}',
        '{"recommender":"films","client":"ada","\\u0063lient":"bob"}',
        '{"recommender":"films","\\u0063lient":"ada","\\u0063lient":"bob"}',
        '{"recommender":"films","client":"ada","limit":1,"limit":2}',
        '{"recommender":"films","client":"ada","limit":1,"limit":null,"limit":2}',
        '{"recommender":"films","client":"ada","candidates":[{"id":"a","id":"b","features":[1]}]}',
        '{"recommender":"films","client":"ada","candidates":['
        '{"id":"a","features":{"indices":[1],"values":[1],"values":[2]}}]}',
        '{"recommender":"films","client":"ada","features":{"indices":[],"indices":[1],"values":[1]}}',
        '{"recommender":"films","client":"ada","candidates":[{"id":"a","i\\u0064":"b","features":[1]}]}',
        '{"recommender":"films","client":"ada","candidates":[{}],"candidates":["{"]}',
        '{"recommender":"films","client":"ada","context":[{}],"context":[0.5]}',
        '{"recommender":"films","client":"{","client":"ada"}',
        '{"recommender":"films","client":"ada","unheard of":1,"unheard of":2}',
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_name_given_twice_in_any_entry_is_refused_for_the_whole_body(
    entry: str, place: int
) -> None:
    entries = [ONE, json.dumps(FULL)]
    entries.insert(place, entry)
    with pytest.raises(Refused) as caught:
        read_recommend(batch(*entries))
    assert caught.value.kind.status == 400
    with pytest.raises(Refused):
        read_recommend(batch(entry))


@pytest.mark.parametrize(
    "entry",
    [
        '{"reward":0,"reward":1,"event_id":"e"}',
        '{"reward":1,"event_id":"e","event_id":null}',
        '{"reward":1,"\\u0065vent_id":"e","event_id":"f"}',
        '{"reward":1,"event_id":"item","item":"i","item":"event_id"}',
    ],
)
def test_so_it_is_in_feedback(entry: str) -> None:
    fine = '{"reward":1,"event_id":"e"}'
    with pytest.raises(Refused):
        read_feedback(batch(fine, entry, fine, name="feedback"))


@pytest.mark.parametrize("before", ["[]", "1", "null", f"[{ONE}]", '"requests"', "[[]]", '[""]'])
@pytest.mark.parametrize("entries", ["", ONE, f"{ONE},{json.dumps(FULL)}"])
def test_a_list_given_twice_is_refused(before: str, entries: str) -> None:
    with pytest.raises(Refused):
        read_recommend(f'{{"requests":{before},"requests":[{entries}]}}'.encode())


@pytest.mark.parametrize(
    "client",
    ["context", "client", "requests", "{", "}{", 'a "client"', "a\\b", "id", "é😀"],
)
def test_a_value_that_looks_like_a_name_is_a_value(client: str) -> None:
    entries = [{"recommender": "films", "client": client, "exclude": [client, client]}] * 2
    for body in (json.dumps, lambda value: json.dumps(value, ensure_ascii=False)):
        read = read_recommend(body({"requests": entries}).encode())
        assert [(one.client, one.exclude) for one in usable(read)] == [(client, [client] * 2)] * 2


def test_entries_with_objects_are_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick way takes them: the slow one is not there to help."""
    monkeypatch.setattr(BatchReader, "_listed", None)
    first, second = read_recommend(batch(json.dumps(FULL), ONE))
    assert not isinstance(first, FailedEntry)
    assert not isinstance(second, FailedEntry)
    assert first.candidates == [
        "a",
        Candidate(id="b", features=(0.5,)),
        Candidate(id="c", features=Sparse(indices=[0], values=[1.0])),
    ]
    assert first.features == Sparse(indices=[1, 4], values=[0.5, 2.0])
    assert second.context == [0.5, 0.25]
    fed = read_feedback(batch('{"reward":1,"event_id":"e"}', name="feedback"))
    assert [one.event_id for one in usable(fed)] == ["e"]


# Each has its own result


def test_bad_entries_have_a_status_each_and_the_others_are_taken() -> None:
    bad = [ONE, '{"client":"ada"}', "7", ONE, '{"recommender":"films","client":"ada","limit":0}']
    assert statuses(read_recommend(batch(*bad))) == [200, 422, 422, 200, 422]
    feedback = ['{"reward":1,"event_id":"e"}', '{"reward":1}', '{"reward":1,"event_id":"f"}']
    read = read_feedback(batch(*feedback, name="feedback"))
    assert statuses(read) == [200, 422, 200]
    assert [one.event_id for one in usable(read)] == ["e", "f"]


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"1",
        b"{}",
        b'{"requests":{}}',
        b'{"requests":null}',
        b'{"feedback":[]}',
        b'{"requests":[],"more":1}',
    ],
)
def test_what_is_not_a_batch_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidArgument):
        read_recommend(body)


@pytest.mark.parametrize("entry", [ONE, "1", json.dumps(FULL)])
def test_a_thousand_entries_are_taken_and_one_more_is_not(entry: str) -> None:
    assert len(read_recommend(batch(*[entry] * 1_000))) == 1_000
    with pytest.raises(InvalidArgument, match="at most 1000"):
        read_recommend(batch(*[entry] * 1_001))


async def test_results_stand_where_their_entries_stood() -> None:
    bad = FailedEntry(InvalidArgument("client", "is missing"))
    entries = [1, bad, 2, 3, bad]
    outcomes = ["one", StoreUnavailable("gone", retry_after=2), "three"]
    results = json.loads(await results_json(entries, outcomes, json.dumps))["results"]
    assert [results[0], results[3]] == ["one", "three"]
    assert [results[place]["status"] for place in (1, 2, 4)] == [422, 503, 422]
    assert results[2]["problem"]["retry_after"] == 2
    assert json.loads(await results_json([], [], json.dumps)) == {"results": []}


# Over HTTP


async def test_a_mixed_batch_is_answered_in_order(caller: Caller) -> None:
    fine = {"recommender": "films", "client": "in order", "context": [0.25, 0.75]}
    entries: list[Any] = [
        fine,
        {**fine, "recommender": "unheard of"},
        {**fine, "context": [2]},
        {**fine, "context": [0.5]},
        fine,
        7,
        {**fine, "event_id": "retried"},
        {**fine, "event_id": "retried"},
        fine,
    ]
    response = await caller.post("/recommend/batch", json={"requests": entries})
    results = response.json()["results"]
    expected = [200, 404, 422, 422, 200, 422, 200, 200, 200]
    assert [one["status"] for one in results] == expected
    assert results[6]["recommendation_id"] == results[7]["recommendation_id"]
    singles = [results[place] for place in (0, 4, 8)]
    assert len({one["recommendation_id"] for one in singles}) == 3
    assert sum(one["personalised"] for one in [*singles, results[6]]) == 3, "a budget for three"
    feedback = [
        {"reward": 1, "recommendation_id": results[4]["recommendation_id"]},
        {"reward": 1, "event_id": "never"},
        {"reward": 0, "recommendation_id": results[4]["recommendation_id"]},
        {"reward": 1, "event_id": "retried"},
        {"reward": 1, "recommendation_id": "forged"},
        {"reward": 1},
        {"reward": 1, "recommendation_id": results[4]["recommendation_id"]},
    ]
    response = await caller.post("/feedback/batch", json={"feedback": feedback})
    received = response.json()["results"]
    assert [one["status"] for one in received] == [200, 404, 409, 200, 400, 422, 200]
    assert [received[place]["duplicate"] for place in (0, 3, 6)] == [False, False, True]
    assert all(received[place]["learned"] for place in (0, 3, 6))


async def test_a_batch_with_two_readings_costs_nobody_anything(caller: Caller) -> None:
    entry = '{"recommender":"films","client":"%s","context":[0.25,0.75]}'
    bodies = [
        batch(entry % "twice", '{"recommender":"films","client":"twice","client":"twice"}'),
        batch(*[entry % "twice"] * 1_001),
    ]
    found = [(await caller.post("/recommend/batch", content=body)).status_code for body in bodies]
    assert found == [400, 422]
    answer = await caller.ask("twice")
    assert answer.json()["privacy"]["spent"]["epsilon"] == 1.0


@pytest.mark.parametrize(
    "body",
    [
        rb'{"requests": [1], "\ud800": 1}',
        rb'{"requests": [1, {"\ud800": 1}]}',
        rb'{"requests": [{"recommender": "films", "client": "\udfff", "context": [0.5, 0.5]}]}',
    ],
)
async def test_half_of_a_surrogate_pair_in_a_batch_is_malformed(
    caller: Caller, body: bytes
) -> None:
    answer = await caller.post("/recommend/batch", content=body)
    assert answer.status_code == 400
    assert answer.json()["type"] == "urn:discreet:problem:malformed-body"
