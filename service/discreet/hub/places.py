"""Where the hub keeps its files: the user's own directory, readable by nobody else."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from discreet.errors import InvalidArgument

DATABASE = "hub.sqlite"
DOOR = "open-hub.html"


def default_folder(*, platform: str, environment: Mapping[str, str], home: Path) -> Path:
    """Return where the platform wants a program's private data."""
    if platform == "darwin":
        return home / "Library" / "Application Support" / "discreet"
    if platform == "win32":
        local = environment.get("LOCALAPPDATA", "")
        return (Path(local) if local else home / "AppData" / "Local") / "discreet"
    # The XDG rule: a relative path in the variable has to be ignored.
    given = Path(environment.get("XDG_DATA_HOME", ""))
    return (given if given.is_absolute() else home / ".local" / "share") / "discreet"


def users_folder() -> Path:
    """Return where this user's data belong on this machine."""
    return default_folder(platform=sys.platform, environment=os.environ, home=Path.home())


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
