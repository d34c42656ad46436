"""The page at /docs: a tab for every algorithm, and nothing from anywhere else."""

import json
import re

import pytest

from discreet.api.reference import ALL, described_for
from discreet.families.registration import FAMILIES
from tests.api.conftest import Caller

pytestmark = pytest.mark.anyio


async def test_links_lead_somewhere(caller: Caller) -> None:
    page = (await caller.get("/docs")).text
    addresses = re.findall(r"""(?:href|src)=["']([^"']+)""", page)
    assert len(addresses) > 10
    for address in addresses:
        assert "//" not in address, "nothing is fetched from another host"
        assert (await caller.get(address)).status_code == 200
    assert (await caller.get("/docs/swagger-ui-licence.txt")).text.count("Apache License") >= 1


async def test_there_is_a_tab_for_every_algorithm(caller: Caller) -> None:
    for name in (ALL, *FAMILIES):
        page = (await caller.get(f"/docs?algorithm={name}")).text
        assert f'<a href="/docs?algorithm={name}" aria-current="page">{name}</a>' in page
        assert page.count("aria-current") == 1
    hostile = (await caller.get("/docs", params={"algorithm": '"><script>'})).text
    assert hostile.count("<script") == 2


async def test_a_tab_shows_what_its_algorithm_has(caller: Caller) -> None:
    whole = (await caller.get("/openapi.json")).json()
    assert (await caller.get("/docs/openapi/all.json")).json() == whole
    sizes = []
    for name in FAMILIES:
        document = (await caller.get(f"/docs/openapi/{name}.json")).json()
        text = json.dumps(document)
        sizes.append(len(text))
        schemas = document["components"]["schemas"]
        referred = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
        assert referred == set(schemas)
        assert "oneOf" not in json.dumps(document["paths"]["/recommenders/{name}"]["put"])
        put = document["paths"]["/recommenders/{name}"]["put"]["requestBody"]
        assert put["content"]["application/json"]["example"]["algorithm"] == name
        assert ("/recommenders/{name}/votes" in document["paths"]) == (name == "p-rec")
        assert ("/recommenders/{name}/profiles" in document["paths"]) == (name == "collaborative")
        assert "/recommend" in document["paths"]
    assert max(sizes) < len(json.dumps(whole))
    assert (await caller.get("/docs/openapi/none.json")).status_code == 404


async def test_an_algorithm_without_examples_is_shown_too(caller: Caller) -> None:
    document = described_for(caller.app.openapi(), "a seventh")
    assert "/recommend" in document["paths"]
    assert "/recommenders/{name}/votes" not in document["paths"]


async def test_the_policy_allows_only_ourselves(caller: Caller) -> None:
    policy = (await caller.get("/docs")).headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
