"""A copy of the service with faults in it, each of which the checker has to find from outside."""

import shutil
from pathlib import Path

import discreet

FAULTS = {
    "a worker's own clock": (
        "decisions/services.py",
        "clock=clock or store.clock",
        "clock=clock or time.time",
        "expired before its time",
    ),
    "a model that is used before it is stored": (
        "decisions/release.py",
        "        saved = await self._store.save(",
        "        self._adopt(recommender, number, released_at, model, figures)\n"
        "        await asyncio.sleep(2.0)\n"
        "        saved = await self._store.save(",
        "before it was stored",
    ),
    "answers that are not kept for retries": (
        "state/lua/answer_event.lua",
        "if redis.call('HSETNX', KEYS[1], 'a', ARGV[1]) == 1 then",
        "if true then return ARGV[1] end\nif true then",
        "different answers under one event id",
    ),
    "retries that pay again": (
        "state/lua/spend.lua",
        "return lapses and tonumber(lapses) > now",
        "return lapses and tonumber(lapses) < 0",
        "debits doubled",
    ),
    "budgets that nobody looks at": (
        "state/lua/spend.lua",
        "local limit = {terms[4], terms[5], terms[6]}",
        "local limit = {UNLIMITED, UNLIMITED, UNLIMITED}",
        "budget exceeded",
    ),
    "feedback that is not claimed": (
        "state/lua/learn.lua",
        "if claimed then",
        "if claimed == '?' then",
        "was counted",
    ),
}
"""What is wrong: the file, what stands there, what is put in its place, what is to be found."""


def planted_service(folder: Path) -> Path:
    """Return a folder for PYTHONPATH that holds the service with every fault."""
    copy = folder / "service"
    shutil.copytree(Path(discreet.__file__).parent, copy / "discreet")
    for name, sound, wrong, _ in FAULTS.values():
        file = copy / "discreet" / name
        text = file.read_text()
        assert text.count(sound) == 1, f"{name} has changed: plant the fault anew"
        file.write_text(text.replace(sound, wrong))
    return copy
