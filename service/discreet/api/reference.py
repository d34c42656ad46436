"""The page at `/docs`: the OpenAPI document as plain HTML.

Rendered here, once, not by a script from another host: it works without a network and under the
strictest content policy, and no third party learns who reads it.
"""

from collections.abc import Iterator, Mapping
from html import escape
from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from discreet.api.page import HEADERS

Schema = Mapping[str, Any]
_METHODS = ("get", "post", "put", "patch", "delete")
_DEEPEST = 4


def mount(app: FastAPI) -> None:
    """Serve the reference at `/docs`."""
    style = (files("discreet.api") / "reference.css").read_bytes()
    drawn: list[str] = []

    async def reference(request: Request) -> Response:
        if not drawn:
            drawn.append(render(app.openapi()))
        return Response(drawn[0], media_type="text/html", headers=HEADERS)

    async def stylesheet(request: Request) -> Response:
        return Response(style, media_type="text/css", headers=HEADERS)

    app.add_route("/docs", reference, methods=["GET"], include_in_schema=False)
    app.add_route("/docs/reference.css", stylesheet, methods=["GET"], include_in_schema=False)


def render(document: Schema) -> str:
    """Return the whole page."""
    info = document["info"]
    schemas: Schema = document["components"]["schemas"]
    operations = [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method in _METHODS
    ]
    by_tag: dict[str, list[str]] = {}
    for method, path, operation in operations:
        drawn = _operation(method, path, operation, schemas)
        by_tag.setdefault(operation["tags"][0], []).append(drawn)
    contents = "".join(
        f'<li><a href="#{_anchor(method, path)}"><b>{method.upper()}</b> {escape(path)}</a></li>'
        for method, path, _ in operations
    )
    body = "".join(f"<h2>{escape(tag)}</h2>{''.join(drawn)}" for tag, drawn in by_tag.items())
    description = "".join(f"<p>{_prose(part)}</p>" for part in info["description"].split("\n\n"))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(info['title'])} API</title>"
        '<link rel="icon" href="/page/icon.svg" type="image/svg+xml">'
        '<link rel="stylesheet" href="/docs/reference.css"></head><body><main>'
        f"<h1>{escape(info['title'])} API <small>{escape(info['version'])}</small></h1>"
        f"{description}<p>For programs: <a href='/openapi.json'>openapi.json</a>. "
        f"For people: <a href='/'>the live page</a>.</p><nav><ul>{contents}</ul></nav>"
        f"{body}</main></body></html>"
    )


def _operation(method: str, path: str, operation: Schema, schemas: Schema) -> str:
    scopes = " or ".join(f"<b>{escape(scope)}</b>" for scope in operation["x-scopes"])
    parts = [
        f'<section id="{_anchor(method, path)}"><h3><b class="{method}">{method.upper()}</b> '
        f"{escape(path)}</h3><p>{_prose(operation.get('description', ''))}</p>",
        f"<p>Needs a key with the scope {scopes}.</p>" if scopes else "<p>Needs no key.</p>",
    ]
    rows = [
        (one["name"], one["schema"], one["required"], f"in the {one['in']}")
        for one in operation.get("parameters", ())
    ]
    if rows:
        parts.append(_table("Parameters", [_row(*row, schemas) for row in rows]))
    body = operation.get("requestBody")
    if body is not None:
        schema = body["content"]["application/json"]["schema"]
        parts.append(_table("Body", list(_fields(schema, schemas))))
    for status, answer in operation["responses"].items():
        schema = answer.get("content", {}).get("application/json", {}).get("schema")
        if status.startswith("2") and schema is not None:
            fields = list(_fields(schema, schemas, answer=True))
            parts.append(_table(f"Answer ({status})", fields))
    problems = "".join(
        f"<li><b>{escape(status)}</b> {escape(answer['description'])}</li>"
        for status, answer in operation["responses"].items()
        if not status.startswith("2")
    )
    parts.append(f"<details><summary>Problems</summary><ul>{problems}</ul></details></section>")
    return "".join(parts)


def _fields(
    schema: Schema, schemas: Schema, prefix: str = "", depth: int = 0, *, answer: bool = False
) -> Iterator[str]:
    """Yield a row for every field, nested ones under their whole name."""
    found = _resolved(schema, schemas)
    if found.get("type") == "array":
        yield from _fields(found["items"], schemas, f"{prefix}[]", depth, answer=answer)
        return
    for choice in (*found.get("anyOf", ()), *found.get("oneOf", ())):
        yield from _fields(choice, schemas, prefix, depth, answer=answer)
    required = () if answer else found.get("required", ())
    for name, value in found.get("properties", {}).items():
        whole = f"{prefix}.{name}" if prefix else name
        note = _resolved(value, schemas).get("description", "")
        yield _row(whole, value, name in required, note, schemas)
        if depth < _DEEPEST:
            yield from _fields(value, schemas, whole, depth + 1, answer=answer)


def _row(name: str, schema: Schema, required: bool, note: str, schemas: Schema) -> str:
    default = schema.get("default")
    if not required and default not in (None, [], {}) and not isinstance(default, Mapping):
        note = f"{note} Default: {default}.".strip()
    asked = "required" if required else ""
    return (
        f"<tr><td><code>{escape(name)}</code> <small>{asked}</small></td>"
        f"<td>{escape(_type(schema, schemas))}</td><td>{_prose(note)}</td></tr>"
    )


def _type(schema: Schema, schemas: Schema) -> str:
    """Say in words what a value may be."""
    found = _resolved(schema, schemas)
    choices = found.get("anyOf") or found.get("oneOf")
    if choices:
        return " or ".join(dict.fromkeys(_type(each, schemas) for each in choices))
    if "const" in found:
        return str(found["const"]).lower()
    if "enum" in found:
        return " or ".join(str(each) for each in found["enum"])
    if found.get("type") == "array":
        most = f", at most {found['maxItems']:,}" if "maxItems" in found else ""
        return f"list of {_type(found['items'], schemas)}{most}"
    limits = [
        f"{sign} {found[name]:g}"
        for name, sign in (
            ("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<")
        )
        if name in found
    ]  # fmt: skip
    if "maxLength" in found:
        limits.append(f"at most {found['maxLength']:,} characters")
    kind = str(found.get("type", "value"))
    return f"{kind} {', '.join(limits)}".strip()


def _resolved(schema: Schema, schemas: Schema) -> Schema:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    return {
        **schemas[reference.rpartition("/")[2]],
        **{k: v for k, v in schema.items() if k != "$ref"},
    }


def _table(title: str, rows: list[str]) -> str:
    return f"<h4>{escape(title)}</h4><table>{''.join(rows)}</table>"


def _prose(text: str) -> str:
    """Return text as HTML; `code` between backticks."""
    parts = escape(text, quote=False).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


def _anchor(method: str, path: str) -> str:
    return escape(f"{method}{path}".replace("/", "-").replace("{", "").replace("}", ""))
