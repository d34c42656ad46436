"""Where the hub keeps its files: the user's own directory, readable by nobody else."""

import os
from pathlib import Path

from platformdirs import user_data_path

from discreet.errors import InvalidArgument

LINK_FILE = "open-hub.html"


def users_folder() -> Path:
    """Return where this platform keeps a user's own data."""
    return user_data_path("discreet", appauthor=False)


def private_folder(path: Path) -> Path:
    """Make the folder if it is missing, for its owner alone, and return it."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgument("--data", f"cannot make {path}: {error.strerror}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise InvalidArgument("--data", f"{path} cannot be written to")
    return path


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, from its first byte on."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
