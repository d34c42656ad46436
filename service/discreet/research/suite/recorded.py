"""Worlds of recorded data, by name, from a folder; nothing of them is part of Discreet."""

from collections.abc import Callable, Mapping
from pathlib import Path

from discreet.research.suite.film_ratings import FilmRatings
from discreet.research.suite.open_bandit import CAMPAIGNS, OPEN_BANDIT_FOLDERS, OpenBandit
from discreet.research.suite.stretches import SuiteWorld
from discreet.research.worlds.files import subfolder

RECORDED: Mapping[str, Callable[[Path], SuiteWorld]] = {
    "ml-100k": lambda data: FilmRatings.load(data, "ml-100k"),
    "ml-1m": lambda data: FilmRatings.load(data, "ml-1m"),
    "open-bandit-all": lambda data: OpenBandit.load(data, "all"),
    "open-bandit-men": lambda data: OpenBandit.load(data, "men"),
    "open-bandit-women": lambda data: OpenBandit.load(data, "women"),
}


def found_in(data: Path) -> list[str]:
    """Return the names of the worlds whose files are below a folder."""
    places = {
        "ml-100k": ("ml-100k/u.item", "u.item"),
        "ml-1m": ("ml-1m/movies.dat", "movies.dat"),
    }
    found = [name for name, files in places.items() if any((data / one).exists() for one in files)]
    logs = subfolder(data, *OPEN_BANDIT_FOLDERS) / "random"
    return found + [f"open-bandit-{one}" for one in CAMPAIGNS if (logs / one).is_dir()]
