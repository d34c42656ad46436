"""Keys open what their scopes say, and only digests of them are kept."""

import pytest

from discreet.decisions.services import DecisionServices
from discreet.errors import InvalidArgument

pytestmark = pytest.mark.anyio


async def test_a_given_key_is_known(services: DecisionServices) -> None:
    assert await services.keys.scopes_of("the-given-key") == {"serve", "admin"}
    assert await services.keys.scopes_of("the-given-key ") is None
    assert await services.keys.scopes_of("") is None


async def test_a_made_key_has_its_scopes_until_it_is_revoked(services: DecisionServices) -> None:
    secret = await services.keys.create(label="shop", scopes=frozenset({"serve"}))
    assert await services.keys.scopes_of(secret) == {"serve"}
    [record] = await services.keys.list()
    assert (record.label, record.scopes) == ("shop", {"serve"})
    await services.keys.revoke(record.id)
    assert await services.keys.scopes_of(secret) is None


async def test_a_secret_is_not_stored(services: DecisionServices) -> None:
    secret = await services.keys.create(label="shop", scopes=frozenset({"serve"}))
    documents = (await services.store.registry()).documents
    assert not any(
        secret in name or secret.encode() in content for name, content in documents.items()
    )


@pytest.mark.parametrize("scopes", [frozenset(), frozenset({"everything"})])
async def test_scopes_must_exist(services: DecisionServices, scopes: frozenset[str]) -> None:
    with pytest.raises(InvalidArgument, match="scopes"):
        await services.keys.create(label="x", scopes=scopes)


async def test_revoking_needs_a_whole_id(services: DecisionServices) -> None:
    await services.keys.create(label="shop", scopes=frozenset({"serve"}))
    with pytest.raises(InvalidArgument):
        await services.keys.revoke("")
