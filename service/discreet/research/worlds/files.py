"""Reading the files of data sets, plain or compressed."""

import gzip
from pathlib import Path

from discreet.errors import InvalidArgument


def read_text(path: Path) -> str:
    """Return a file's text, or raise `InvalidArgument` naming it. One that ends in .gz is unpacked.

    Data sets of films and artists are older than UTF-8's success: they are Latin-1.
    """
    try:
        content = path.read_bytes()
        return (gzip.decompress(content) if path.suffix == ".gz" else content).decode("latin-1")
    except (OSError, EOFError) as error:
        raise InvalidArgument("data", f"{path} cannot be read: {error}") from None


def subfolder(folder: Path, *names: str) -> Path:
    """Return the first of these folders in `folder` that exists, else `folder` itself."""
    return next((folder / name for name in names if (folder / name).is_dir()), folder)
