"""What silence teaches: three shops on the demo's world, through the served HTTP path.

    python loadtests/shop.py [--visits 20000] [--rate 100] [--wait 5s] [--json]

One shop sends a reward for everything that it showed, zeros too. One sends clicks and nothing else.
One sends clicks as well, to a recommender whose document says `reward: {wait, default: 0}`. The
same visitors come to all of them, at the same time.

In that world the true mean of every item for every visitor is known. So what is compared is the
mean reward to expect of what was answered in the last quarter of the visits, without the luck of
single clicks.
"""

import argparse
import asyncio
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import as_file, files
from typing import Any

import httpx
import numpy as np
from stage import DISCREET, KEY, free_port, running_process, wait_for_url

from discreet import configuration
from discreet.families.stored import describe
from discreet.research.simulate.traffic import CLUSTERS, DEMO_WORLD, SPREAD, Traffic, send_traffic
from discreet.research.simulate.traffic_results import TrafficResults, VisitTotals
from discreet.research.worlds.environments import BumpRewards, ClusteredContexts

ZEROS, CLICKS, AWAITED = SHOPS = ("zeros", "clicks", "awaited")
_DRAWN = 20_000


def demo_document() -> dict[str, Any]:
    """Return the demo's recommender, as the API shows it."""
    with as_file(files("discreet.demo") / "recommenders.yaml") as path:
        return describe(configuration.read(path).recommenders["films"])


def truth(items: list[str]) -> dict[str, float]:
    """Return the mean reward of the best item for each visitor, and of the best one for all."""
    contexts = ClusteredContexts(dimensions=2, clusters=CLUSTERS, spread=SPREAD, seed=DEMO_WORLD)
    rewards = BumpRewards(items=tuple(items), dimensions=2, seed=DEMO_WORLD)
    drawn = contexts.draw(np.random.default_rng(0), _DRAWN)
    means = np.array([rewards.means(context) for context in drawn])
    return {"best": float(means.max(axis=1).mean()), "best_fixed": float(means.mean(axis=0).max())}


async def compare(
    url: str,
    key: str,
    *,
    visits: int,
    rate: float,
    wait: str,
    connections: int = 8,
    changes: Mapping[str, Any] | None = None,
) -> dict[str, float]:
    """Return the mean reward of every shop in the last quarter of its visits, and the truth.

    `changes` replace fields of the demo's document.
    """
    document = {**demo_document(), **(changes or {})}
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=120) as server:
        for shop in SHOPS:
            reward = {"wait": wait, "default": 0} if shop == AWAITED else {}
            put = await server.put(f"/recommenders/{shop}", json={**document, "reward": reward})
            put.raise_for_status()
    known = truth([item["id"] for item in document["items"]])
    runs = [
        _visited(
            Traffic(
                url=url,
                key=key,
                recommender=shop,
                rate=rate,
                seconds=86_400,
                connections=connections,
                clicks_only=shop != ZEROS,
            ),
            visits,
        )
        for shop in SHOPS
    ]
    results = await asyncio.gather(*runs)
    rewards = {
        shop: known["best"] - one.regret / one.answers
        for shop, one in zip(SHOPS, (_last_quarter(each) for each in results), strict=True)
    }
    errors = sum(sum(result.errors.values()) for result in results)
    return {**rewards, **known, "errors": float(errors)}


async def _visited(traffic: Traffic, visits: int) -> TrafficResults:
    """Send traffic until there were so many visits."""
    enough = asyncio.Event()

    def watch(results: TrafficResults) -> None:
        if results.total.answers >= visits:
            enough.set()

    return await send_traffic(traffic, stop=enough, watch=watch)


def _last_quarter(results: TrafficResults) -> VisitTotals:
    total = VisitTotals()
    for _, one in sorted(results.seconds.items(), reverse=True):
        total.add(one)
        if total.answers >= results.total.answers / 4:
            break
    return total


@contextmanager
def _served() -> Iterator[str]:
    port = free_port()
    with tempfile.TemporaryDirectory() as data:
        command = [DISCREET, "serve", "--port", str(port), "--data", data, "--workers", "2"]
        with running_process(command, DISCREET_API_KEY=KEY):
            url = f"http://127.0.0.1:{port}"
            wait_for_url(f"{url}/health/ready")
            yield url


def main() -> None:
    """Run and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--visits", type=int, default=20_000, help="to each shop")
    parser.add_argument("--rate", type=float, default=100.0, help="visits a second to each shop")
    parser.add_argument("--wait", default="5s")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with _served() as url:
        found = asyncio.run(compare(url, KEY, visits=args.visits, rate=args.rate, wait=args.wait))
    if args.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:>16}  {value:.4g}")


if __name__ == "__main__":
    main()
