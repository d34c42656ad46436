"""Keys open what their scopes say, and only digests of them are kept."""

import json

import pytest

from discreet.decisions.keys import KEY_SCHEMA, UNREADABLE, digest_of, read_key
from discreet.decisions.registry import KEY
from discreet.decisions.services import DecisionServices
from discreet.errors import InvalidArgument, NotAllowed

pytestmark = pytest.mark.anyio


async def test_a_given_key_is_known(services: DecisionServices) -> None:
    grant = await services.keys.grant_of("the-given-key")
    assert grant is not None
    assert (grant.scopes, grant.bound) == ({"serve", "admin"}, False)
    assert await services.keys.grant_of("the-given-key ") is None
    assert await services.keys.grant_of("") is None


async def test_a_made_key_has_its_scopes_until_it_is_revoked(services: DecisionServices) -> None:
    secret = await services.keys.create(label="shop", scopes=frozenset({"serve"}))
    grant = await services.keys.grant_of(secret)
    assert grant is not None
    assert grant.scopes == {"serve"}
    [record] = await services.keys.list()
    assert (record.label, record.scopes) == ("shop", {"serve"})
    await services.keys.revoke(record.id)
    assert await services.keys.grant_of(secret) is None


async def test_a_secret_is_not_stored(services: DecisionServices) -> None:
    secret = await services.keys.create(label="shop", scopes=frozenset({"serve"}))
    documents = (await services.store.registry()).documents
    assert not any(
        secret in name or secret.encode() in content for name, content in documents.items()
    )


async def test_a_key_bound_to_recommenders_opens_no_other(services: DecisionServices) -> None:
    secret = await services.keys.create(
        label="films", scopes=frozenset({"serve"}), recommenders=frozenset({"films"})
    )
    grant = await services.keys.grant_of(secret)
    assert grant is not None
    assert grant.bound
    grant.require_recommender("films")
    grant.require_client("anybody")
    with pytest.raises(NotAllowed, match="other recommenders"):
        grant.require_recommender("books")
    [record] = await services.keys.list()
    assert record.recommenders == {"films"}
    # A version that does not know bounds must not use the key without them.
    content = (await services.store.registry()).documents[KEY + digest_of(secret)]
    assert json.loads(content)["schema"] == 2


async def test_a_key_bound_to_nothing_is_refused(services: DecisionServices) -> None:
    with pytest.raises(InvalidArgument, match="recommenders"):
        await services.keys.create(label="x", scopes=frozenset({"serve"}), recommenders=frozenset())


@pytest.mark.parametrize("scopes", [frozenset(), frozenset({"everything"}), frozenset({"profile"})])
async def test_scopes_must_exist(services: DecisionServices, scopes: frozenset[str]) -> None:
    with pytest.raises(InvalidArgument, match="scopes"):
        await services.keys.create(label="x", scopes=scopes)


async def test_revoking_needs_a_whole_id(services: DecisionServices) -> None:
    await services.keys.create(label="shop", scopes=frozenset({"serve"}))
    with pytest.raises(InvalidArgument):
        await services.keys.revoke("")


async def test_a_newer_field_is_ignored_and_an_unknown_scope_opens_nothing(
    services: DecisionServices,
) -> None:
    fields = {"schema": 1, "label": "shop", "scopes": ["serve", "later"], "colour": "red"}
    await write(services, "newer", json.dumps(fields).encode())
    assert await scopes_of(services, "newer") == {"serve"}
    assert await services.keys.label_of("newer") == "shop"


@pytest.mark.parametrize(
    "content",
    [
        b"not json",
        b"[]",
        b"{}",
        b'{"label": 1, "scopes": ["serve"]}',
        b'{"label": "x", "scopes": "serve"}',
        b'{"label": "x", "scopes": [["serve"]]}',
        b'{"label": "x", "scopes": ["serve"], "schema": %d}' % (KEY_SCHEMA + 1),
        b'{"label": "x", "scopes": ["serve"], "schema": "1"}',
        b'{"label": "x", "scopes": ["serve"], "schema": 2, "recommenders": "films"}',
        b'{"label": "x", "scopes": ["serve"], "schema": 2, "recommenders": [1]}',
        b"[" * 100_000,
    ],
)
async def test_an_unreadable_key_opens_nothing_and_harms_no_other(
    services: DecisionServices, content: bytes
) -> None:
    with pytest.raises(ValueError, match="it "):
        read_key("digest", content)
    good = await services.keys.create(label="shop", scopes=frozenset({"serve"}))
    await write(services, "bad", content)
    assert await services.keys.grant_of("bad") is None
    assert await services.keys.label_of("bad") is None
    assert await scopes_of(services, good) == {"serve"}
    assert await scopes_of(services, "the-given-key") == {"serve", "admin"}
    [unreadable] = [one for one in await services.keys.list() if one.label == UNREADABLE]
    assert unreadable.scopes == frozenset()
    await services.keys.revoke(unreadable.id)
    assert [one.label for one in await services.keys.list()] == ["shop"]


async def write(services: DecisionServices, secret: str, content: bytes) -> None:
    """Store a key's record as another version might have written it."""
    name = KEY + digest_of(secret)
    assert await services.store.put_document(name=name, document=content, expected=None)
    await services.registry.settle()


async def scopes_of(services: DecisionServices, secret: str) -> frozenset[str]:
    """What a key that is known may do."""
    grant = await services.keys.grant_of(secret)
    assert grant is not None
    return grant.scopes
