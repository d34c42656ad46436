"""Every command that the README prints does what the README says."""

import asyncio
import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from discreet import configuration
from discreet.decisions.services import open_simulation
from discreet.families.documents import RecommenderDocument
from discreet.families.questions import Ask, Feedback, Receipt
from discreet.privacy.noise import SystemNoise
from discreet.research.simulate.traffic import CLUSTERS, DEMO_WORLD, SPREAD
from discreet.research.worlds.environments import BumpRewards, ClusteredContexts
from discreet.state.memory import MemoryStore
from tests.demo_server import DISCREET, Demo, demo_server
from tests.waiting import PATIENCE

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROUND_SECONDS = 8
ENOUGH_FEEDBACK = 8_000
MOST_SECONDS = 1500
MANY = 1_000

pytestmark = pytest.mark.timeout(2 * MOST_SECONDS)


def section(title: str) -> str:
    """Return what stands under a heading."""
    found = re.search(
        rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL
    )
    assert found, f"the README has no section {title!r}"
    return found.group(1)


def blocks(title: str, language: str) -> list[str]:
    """Return a section's blocks of one language."""
    return [text for kind, text in FENCE.findall(section(title)) if kind == language]


def test_the_sections_stand_in_order() -> None:
    assert re.findall(r"^## (.*)$", README, re.MULTILINE) == [
        "See it work",
        "What is promised, and what is not",
        "Which recommender to choose",
        "Deploy",
        "Measure",
        "Develop",
    ]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo in the folder that the README names, seen from an empty one."""
    home = tmp_path_factory.mktemp("readme")
    (home / ".discreet").mkdir()
    with demo_server(home / ".discreet") as running:
        yield running


@dataclass(frozen=True)
class Tour:
    """What each block printed, and how much people liked what they got before and after."""

    outputs: list[str]
    liking_before: float
    liking_after: float


@pytest.fixture(scope="module")
def tour(demo: Demo) -> Tour:
    """Type the whole tour into one shell."""
    liking_before = liking(demo)
    url = f"http://127.0.0.1:{demo.port}"
    script = ["set -eu", _make(demo)]
    for block in blocks("See it work", "sh"):
        script += [block.replace("http://127.0.0.1:8000", url), "echo '<end of block>'"]
    environment = {k: v for k, v in os.environ.items() if k != "DISCREET_API_KEY"}
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=demo.data.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    outputs = done.stdout.split("<end of block>\n")[:-1]
    return Tour(outputs, liking_before, liking(demo))


def _make(demo: Demo) -> str:
    """Return a shell function that does what make would: `run` runs already, `traffic` is short."""
    command = subprocess.run(
        ["make", "-n", "traffic", f"PORT={demo.port}", f"DATA={demo.data}"],
        cwd=ROOT,
        env={**os.environ, "MAKEFLAGS": ""},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    ).stdout.splitlines()[-1]
    words = shlex.split(command.removeprefix("exec "))
    assert words[0].endswith("/discreet")
    typed = shlex.join([DISCREET, *words[1:], "--seconds", str(ROUND_SECONDS)])
    heard = (
        f"curl -sS {demo.url}/metrics -H 'Authorization: Bearer {demo.key}' |"
        # The traffic sends feedback on every item that it gets.
        """ sed -n 's/^discreet_items_total{.*recommender="films".*} \\([0-9]*\\).*/\\1/p'"""
    )
    # As many rounds as a busy machine needs for what an idle one does in the first.
    return f"""make() {{
        [ "$1" = traffic ] || return 0
        for round in $(seq 40); do
            {typed}
            [ "$({heard})" -lt {ENOUGH_FEEDBACK} ] || break
        done
    }}"""


def liking(demo: Demo) -> float:
    """Return how much strangers from all over the crowd like what they get, by their true means."""
    world = BumpRewards(items=tuple(sorted(films())), dimensions=2, seed=DEMO_WORLD)
    crowd = ClusteredContexts(dimensions=2, clusters=CLUSTERS, spread=SPREAD, seed=DEMO_WORLD)
    tastes = crowd.draw(np.random.default_rng(5), MANY).round(4).tolist()
    requests = [
        {"recommender": "films", "client": f"many-{time.time_ns()}-{n}", "context": taste}
        for n, taste in enumerate(tastes)
    ]
    results = demo.call("POST", "/recommend/batch", {"requests": requests})["results"]
    films_got = [world.items.index(result["items"][0]["id"]) for result in results]
    liked = [world.means(taste)[film] for taste, film in zip(tastes, films_got, strict=True)]
    return float(np.mean(liked))


def counts(output: str) -> dict[str, int]:
    """Return what `uniq -c` printed, by film."""
    found = re.findall(r"^ *(\d+) (.+)$", output, re.MULTILINE)
    return {film: int(number) for number, film in found}


def films() -> set[str]:
    path = ROOT / "service" / "discreet" / "demo" / "recommenders.yaml"
    return {item.id for item in configuration.read(path).recommenders["films"].items}


def test_strangers_get_films_before_and_after(tour: Tour) -> None:
    before = counts(tour.outputs[1])
    after = counts(tour.outputs[2].rpartition("a second\n")[2])
    for found in (before, after):
        assert set(found) <= films()
        assert sum(found.values()) == 30


def test_a_minute_of_traffic_teaches_what_people_like(tour: Tour) -> None:
    # Untaught, the demo earns 0.18 +- 0.01 of them. The best film for everybody would earn 0.26, so
    # more than 0.28 has to be personal.
    assert tour.liking_before < 0.28
    assert tour.liking_after > 0.28


def test_a_budget_runs_out_as_printed(tour: Tour) -> None:
    assert tour.outputs[3] == blocks("See it work", "text")[2]


def test_feedback_counts_once_as_printed(tour: Tour) -> None:
    assert tour.outputs[4] == blocks("See it work", "text")[3]


def test_the_recommender_of_the_readme_is_accepted(tmp_path: Path) -> None:
    (text,) = blocks("Which recommender to choose", "yaml")
    (tmp_path / "recommenders.yaml").write_text(text)
    (tmp_path / "films.txt").write_text("a\nb\n")
    document = configuration.read(tmp_path / "recommenders.yaml").recommenders["films"]
    assert [item.id for item in document.items] == ["a", "b"]
    promised = re.search(r"# affords (\d+) answers\n", text)
    assert promised is not None
    assert asyncio.run(_affords(document)) == int(promised.group(1))
    clicks = re.search(r"# affords (\d+) clicks", text)
    assert clicks is not None
    assert asyncio.run(_clicks(document)) == int(clicks.group(1))


async def _affords(document: RecommenderDocument) -> int:
    """Return how many personalised answers one client gets."""
    services = await open_simulation(store=MemoryStore(), noise=SystemNoise())
    await services.registry.put("films", document)
    ask = Ask(recommender="films", client="ada", context=[0.1, 0.2])
    answers = 0
    while (await services.recommend.recommend(ask)).personalised:
        answers += 1
    await services.close()
    return answers


async def _clicks(document: RecommenderDocument) -> int:
    """Return how many clicks of one client are learned."""
    services = await open_simulation(store=MemoryStore(), noise=SystemNoise())
    await services.registry.put("films", document)
    ask = Ask(recommender="films", client="ada", context=[0.1, 0.2])
    clicks = 0
    while True:
        answer = await services.recommend.recommend(ask)
        (receipt,) = await services.feedback.record_many([Feedback(1.0, answer.recommendation_id)])
        assert isinstance(receipt, Receipt)
        if not receipt.learned:
            break
        clicks += 1
    await services.close()
    return clicks
