"""The page at /docs shows every address, and asks nobody else for anything."""

import re

import pytest

from tests.api.conftest import Caller

pytestmark = pytest.mark.anyio


async def test_every_address_is_described(caller: Caller) -> None:
    paths = (await caller.get("/openapi.json")).json()["paths"]
    answer = await caller.get("/docs")
    assert answer.headers["content-type"].startswith("text/html")
    for path, methods in paths.items():
        for method, operation in methods.items():
            assert f"</b> {path}</h3>" in answer.text
            assert f">{method.upper()}</b>" in answer.text
            assert operation["description"].split("`")[0].split("'")[0] in answer.text
    for field in ("recommendation_id", "privacy.answers.budget.epsilon", "decision_ttl_seconds"):
        assert f"<code>{field}</code>" in answer.text


async def test_links_lead_somewhere(caller: Caller) -> None:
    page = (await caller.get("/docs")).text
    for address in re.findall(r"""(?:href|src)=["']([^"']+)""", page):
        assert "//" not in address, "nothing is fetched from another host"
        if address.startswith("#"):
            assert f'id="{address[1:]}"' in page
        else:
            assert (await caller.get(address)).status_code == 200
    assert "<script" not in page


async def test_the_policy_allows_only_ourselves(caller: Caller) -> None:
    policy = (await caller.get("/docs")).headers["content-security-policy"]
    assert "default-src 'self'" in policy
