"""The live page as it is served: whole, without a key, and under a strict policy."""

import re
from importlib.resources import files

import httpx
import pytest
from fastapi import FastAPI

from discreet.api import page

pytestmark = pytest.mark.anyio


@pytest.fixture
def caller() -> httpx.AsyncClient:
    app = FastAPI()
    page.mount(app)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://test")


async def test_every_part_is_served_with_its_type_and_the_policy(caller: httpx.AsyncClient) -> None:
    for name, media_type in page.MEDIA_TYPES.items():
        places = {page.INDEX: "/", page.STATEMENT: "/statement"}
        answer = await caller.get(places.get(name, f"/page/{name}"))
        assert answer.status_code == 200
        assert answer.headers["content-type"] == media_type
        assert answer.content == (files(page) / name).read_bytes()
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'self';")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


async def test_nothing_else_of_the_folder_is_served(caller: httpx.AsyncClient) -> None:
    for path in ("__init__.py", "..%2fsecurity.py", "index.html", "nothing.js"):
        assert (await caller.get(f"/page/{path}")).status_code == 404


async def test_whatever_a_part_names_is_served(caller: httpx.AsyncClient) -> None:
    index = (await caller.get("/")).text
    named = set(re.findall(r'(?:src|href)="(/page/[^"]+)"', index))
    assert {"/page/page.js", "/page/page.css", "/page/icon.svg"} <= named
    for script in ("page.js", "trial.js", "chart.js", "measures.js"):
        text = (await caller.get(f"/page/{script}")).text
        named |= {f"/page/{other}" for other in re.findall(r"from '\./([^']+)'", text)}
    for path in named:
        assert (await caller.get(path)).status_code == 200


async def test_no_part_names_another_host_or_needs_a_looser_policy(
    caller: httpx.AsyncClient,
) -> None:
    for name in page.MEDIA_TYPES:
        text = (await caller.get("/" if name == page.INDEX else f"/page/{name}")).text
        hosts = set(re.findall(r"https?://[^\s'\"<>)]+", text))
        assert hosts <= {"http://www.w3.org/2000/svg"}, name  # the name of a namespace
        assert not re.search(r"\sstyle=|\son\w+=|<script>|javascript:|innerHTML|eval\(", text), name


async def test_the_page_is_not_part_of_the_api(caller: httpx.AsyncClient) -> None:
    paths = (await caller.get("/openapi.json")).json()["paths"]
    assert paths == {}
