"""If-Match and If-None-Match: a change is made to what its caller has seen, or not at all."""

from typing import Any

import pytest

from discreet.api.conditions import condition
from discreet.errors import InvalidArgument
from tests.api.conftest import FILMS, Caller

pytestmark = pytest.mark.anyio

PATH = "/recommenders/own"
WAYS: list[tuple[str, str, Any]] = [
    ("PUT", PATH, {**FILMS, "exploration": {"rate": 0.9}}),
    ("PATCH", PATH, {"exploration": {"rate": 0.8}}),
    ("POST", f"{PATH}/items", {"items": ["new"]}),
    ("PATCH", f"{PATH}/items/a", {"hidden": True}),
    ("DELETE", f"{PATH}/items/b", None),
    ("DELETE", PATH, None),
]


@pytest.mark.parametrize(("method", "path", "body"), WAYS)
async def test_only_the_document_that_was_seen_is_changed(
    caller: Caller, method: str, path: str, body: Any
) -> None:
    await caller.put(PATH, json=FILMS)
    seen = (await caller.get(PATH)).headers["etag"]
    changed = await caller.patch(PATH, json={"decision_ttl_seconds": 60})
    standing = (await caller.get(PATH)).headers["etag"]
    assert changed.headers["etag"] == standing != seen
    for stale in (seen, '"x"', f"W/{standing}"):
        refused = await caller.request(method, path, json=body, headers={"If-Match": stale})
        assert refused.status_code == 412
        assert refused.json()["type"] == "urn:discreet:problem:document-changed"
    assert (await caller.get(PATH)).headers["etag"] == standing
    fresh = f'"x", {standing}'
    done = await caller.request(method, path, json=body, headers={"If-Match": fresh})
    assert done.is_success
    assert (await caller.get(PATH)).headers.get("etag") != standing
    await caller.delete(PATH)


async def test_a_recommender_is_made_only_where_there_is_none(caller: Caller) -> None:
    new = {"If-None-Match": "*"}
    assert (await caller.put("/recommenders/films", json=FILMS, headers=new)).status_code == 412
    made = await caller.put("/recommenders/books", json=FILMS, headers=new)
    assert made.status_code == 201
    any_there_is = {"If-Match": "*"}
    again = await caller.put("/recommenders/books", json=FILMS, headers=any_there_is)
    assert (again.status_code, again.headers["etag"]) == (200, made.headers["etag"])
    assert (
        await caller.put("/recommenders/no", json=FILMS, headers=any_there_is)
    ).status_code == 412


@pytest.mark.parametrize("header", ["x", '"x', '"x" "y"', '"x",', ""])
async def test_what_is_no_tag_is_refused(header: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        await condition(if_match=header)
    assert caught.value.argument == "If-Match"
    with pytest.raises(InvalidArgument):
        await condition(if_none_match=header)
