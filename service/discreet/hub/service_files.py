"""The small files that name services: `discreet hub --service FILE`.

A Discreet server:

    name: films
    adapter: discreet
    url: https://recommend.example
    recommender: films
    key_file: films.key

Any other recommendation service: see `plain_server`. Paths are relative to the file.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from discreet.errors import InvalidArgument
from discreet.hub.plain_server import PlainServer, PlainServiceDocument, ServiceFilePart
from discreet.hub.server import RecommendationServer, ServiceAdapter, require_key


class DiscreetServiceDocument(ServiceFilePart):
    """The file of a Discreet server."""

    adapter: Literal["discreet"]
    name: str
    url: str
    recommender: str
    key_file: str


_FILE: TypeAdapter[DiscreetServiceDocument | PlainServiceDocument] = TypeAdapter(
    Annotated[DiscreetServiceDocument | PlainServiceDocument, Field(discriminator="adapter")]
)


def read(path: Path) -> tuple[str, ServiceAdapter]:
    """Return a service's name and its adapter. Raises `InvalidArgument`."""
    try:
        content: Any = YAML(typ="safe", pure=True).load(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidArgument("--service", f"cannot read {path}: {error.strerror}") from error
    except (YAMLError, UnicodeDecodeError) as error:
        raise InvalidArgument("--service", f"{path} is not YAML: {error}") from error
    try:
        document = _FILE.validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise InvalidArgument("--service", f"{path}: {where}: {first['msg']}") from None
    key = "" if document.key_file is None else read_key(path.parent / document.key_file)
    if isinstance(document, PlainServiceDocument):
        return document.name, PlainServer(document, key)
    server = RecommendationServer(
        url=document.url.rstrip("/"), recommender=document.recommender, key=key
    )
    return document.name, server


def read_key(path: Path) -> str:
    """Return the key in a file. Raises `InvalidArgument`."""
    try:
        key = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument("--key-file", f"cannot read {path}") from error
    require_key(key)
    return key
