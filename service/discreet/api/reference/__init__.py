"""The page at `/docs`: the OpenAPI document, drawn by Swagger UI, with a tab for every algorithm.

Swagger UI is carried along and served from here: it works without a network and under a content
policy that allows nothing else, and no third party learns who reads it. A tab shows what a user of
one algorithm needs: its document, its own calls and those that all algorithms have.
"""

import copy
from collections.abc import Iterator, Mapping
from html import escape
from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from discreet.api.examples import add_examples
from discreet.api.page import HEADERS
from discreet.errors import UnknownRecommender
from discreet.families.registration import FAMILIES

Schema = dict[str, Any]

ALL = "all"
OWN_TAGS: Mapping[str, frozenset[str]] = {
    "contextual": frozenset({"maps"}),
    "p-dap": frozenset({"maps", "vendors"}),
    "fclub": frozenset({"federation"}),
    "mirror-descent": frozenset({"nodes", "personalizer"}),
    "p-rec": frozenset({"votes"}),
    "collaborative": frozenset({"profiles"}),
}
"""Calls that only some algorithms have."""
_MEDIA_TYPES = {
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
    "swagger-ui-licence.txt": "text/plain; charset=utf-8",
    "reference.js": "text/javascript; charset=utf-8",
    "reference.css": "text/css; charset=utf-8",
}
_HEADERS = {
    **HEADERS,
    # Swagger UI's style sheet has its icons in it.
    "Content-Security-Policy": HEADERS["Content-Security-Policy"] + "; img-src 'self' data:",
}
_REFERENCE = "#/components/schemas/"


def mount(app: FastAPI) -> None:
    """Serve the reference at `/docs`, and what it draws under `/docs/openapi/`."""
    folder = files(__name__)
    parts = {name: (folder / name).read_bytes() for name in _MEDIA_TYPES}
    page = (folder / "index.html").read_text(encoding="utf-8")
    documents: dict[str, bytes] = {}

    async def reference(request: Request) -> Response:
        tabs = _tabs(request.query_params.get("algorithm", ALL))
        drawn = page.replace("<!-- tabs -->", tabs)
        return Response(drawn, media_type="text/html", headers=_HEADERS)

    async def part(request: Request) -> Response:
        name = request.url.path.rpartition("/")[2]
        return Response(parts[name], media_type=_MEDIA_TYPES[name], headers=_HEADERS)

    async def document(request: Request) -> Response:
        algorithm = request.path_params["algorithm"]
        if algorithm != ALL and algorithm not in FAMILIES:
            raise UnknownRecommender("no algorithm of that name")
        if algorithm not in documents:
            documents[algorithm] = to_json(described_for(app.openapi(), algorithm))
        return Response(documents[algorithm], media_type="application/json", headers=_HEADERS)

    app.add_route("/docs", reference, methods=["GET"], include_in_schema=False)
    for name in parts:
        app.add_route(f"/docs/{name}", part, methods=["GET"], include_in_schema=False)
    app.add_route(
        "/docs/openapi/{algorithm}.json", document, methods=["GET"], include_in_schema=False
    )


def _tabs(chosen: str) -> str:
    current = ' aria-current="page"'
    return "".join(
        f'<a href="/docs?algorithm={escape(name)}"{current if name == chosen else ""}>'
        f"{escape(name)}</a>"
        for name in (ALL, *FAMILIES)
    )


def described_for(openapi: Mapping[str, Any], algorithm: str) -> Schema:
    """Return what the OpenAPI document says to users of one algorithm, with its examples."""
    document: Schema = copy.deepcopy(dict(openapi))
    if algorithm == ALL:
        return document
    others = frozenset[str]().union(*OWN_TAGS.values()) - OWN_TAGS.get(algorithm, frozenset())
    for path, methods in list(document["paths"].items()):
        kept = {
            method: operation
            for method, operation in methods.items()
            if not others & set(operation["tags"])
        }
        if kept:
            document["paths"][path] = kept
        else:
            del document["paths"][path]
    _choose(document["paths"], algorithm)
    add_examples(document, algorithm)
    schemas: Schema = document["components"]["schemas"]
    reached = _reached(document["paths"], schemas)
    document["components"]["schemas"] = {name: schemas[name] for name in schemas if name in reached}
    return document


def _choose(node: Any, algorithm: str) -> None:
    """Put one algorithm's document wherever any of them may stand."""
    for child in _children(node):
        if isinstance(child, dict) and "discriminator" in child:
            chosen = child["discriminator"].get("mapping", {}).get(algorithm)
            if chosen is not None:
                child.clear()
                child["$ref"] = chosen
        _choose(child, algorithm)


def _children(node: Any) -> Iterator[Any]:
    if isinstance(node, dict):
        yield from list(node.values())
    elif isinstance(node, list):
        yield from node


def _reached(node: Any, schemas: Mapping[str, Any]) -> set[str]:
    """Return the names of the schemas that are referred to, directly or not."""
    found: set[str] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        name = each.get("$ref", "") if isinstance(each, dict) else ""
        if name.startswith(_REFERENCE) and name.removeprefix(_REFERENCE) not in found:
            found.add(name.removeprefix(_REFERENCE))
            waiting.append(schemas[name.removeprefix(_REFERENCE)])
        waiting.extend(_children(each))
    return found
