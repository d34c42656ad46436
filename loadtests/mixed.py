"""What callers wait when every family is asked at once, at a constant rate of arrivals.

    python loadtests/mixed.py                         200 arrivals a second, for 30 seconds
    python loadtests/mixed.py --rate 50 --seconds 10 --workers 2 --json

One server has a recommender of each family, filled so that it answers for real: rounds with votes,
items with features, trained profiles, feedback everywhere. Each arrival asks one of them: p-dap in
40% of cases, fclub and mirror-descent in 20% each, p-rec and collaborative in 10% each; half of
them say how they liked the answer. (What EpicRec sends to a server is collaborative's profiles.)

k6 sends at the given rate, whatever comes back. What it could not send in time is shown as
dropped, and every reply under its status; 0 is no reply at all. The store syncs every write to
disk. k6 runs on the same machine as the server and takes its share of it.
"""

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np
from drive import recommend_bodies
from stage import HEADERS, HERE, KEY, PATIENCE, PLENTY, PRIVATE, Target, discreet, document

from discreet.state.embedded import EmbeddedStore

WEIGHTS = {"p-dap": 40, "fclub": 20, "mirror-descent": 20, "p-rec": 10, "collaborative": 10}
PATHS = ("recommend", "feedback")
TELLING = 0.5
STATUSES = (0, 200, 400, 401, 403, 404, 409, 410, 413, 422, 429, 500, 502, 503, 504)
CLIENTS = 400  # each asks and tells once before anything is measured: nobody is a stranger then
ITEMS, OBJECTS, VOTERS = 100, 5, 3_000

Row = dict[str, Any]
Say = Callable[[str], None]


def documents() -> dict[str, dict[str, Any]]:
    """Return a recommender of each family, with budgets that do not run out."""
    names = [f"item-{number}" for number in range(ITEMS)]
    waves = np.cos(np.outer(np.arange(ITEMS), np.arange(1, 11))).round(4).tolist()
    dense = [{"id": name, "features": waves[at]} for at, name in enumerate(names)]
    thin = [{"id": name, "features": sparse(at)} for at, name in enumerate(names)]
    return {
        "p-dap": document(),
        "fclub": {
            "role": "local",
            "dimensions": 10,
            "norms": "scale",
            "items": dense,
            "privacy": {"feedback": PRIVATE["feedback"]},
        },
        "mirror-descent": {
            "features": {"clients": 100, "items": 100},
            "items": thin,
            "privacy": PRIVATE,
        },
        "p-rec": {
            "objects": OBJECTS,
            "voters": VOTERS,
            "horizon": 999,
            "peers": 750,
            "privacy": {"budget": PLENTY},
        },
        "collaborative": {
            "items": names,
            "privacy": {"answers": "on-device", "feedback": PRIVATE["feedback"]},
        },
    }


def sparse(number: int) -> dict[str, list[Any]]:
    """Return three features out of 100."""
    return {"indices": [number % 30, 30 + number % 31, 61 + number % 37], "values": [0.5] * 3}


def arrival(family: str, number: int, *, tells: bool) -> Row:
    """Return what a family's n-th visitor sends, and likes: ids that end with one of `likes`."""
    asked = json.loads(recommend_bodies(1, start=number, clients=CLIENTS)[0])
    if family != "p-dap":
        del asked["context"]
    if family == "mirror-descent":
        asked["features"] = sparse(number % CLIENTS)
    likes = "0" if family == "p-rec" else ("02468", "13579")[number % 2]
    body = json.dumps({**asked, "recommender": f"mixed-{family}"})
    return {"family": family, "body": body, "likes": likes if tells else None}


def planned(families: Sequence[str], size: int) -> list[Row]:
    """Return all arrivals in their order; each family's go on where its filling ended."""
    rng = np.random.default_rng(0)
    weights = np.array([WEIGHTS[family] for family in families])
    picks = rng.choice(families, size, p=weights / weights.sum()).tolist()
    tell = (rng.random(size) < TELLING).tolist()
    numbers = {family: count(CLIENTS) for family in families}
    drawn = zip(picks, tell, strict=True)
    return [arrival(family, next(numbers[family]), tells=tells) for family, tells in drawn]


def installed() -> list[str]:
    """Return the families whose packages are here; the server runs in the same environment."""
    return [one for one in WEIGHTS if one != "collaborative" or find_spec("implicit")]


def fill(client: httpx.Client, family: str, *, questions: int) -> None:
    """Give a recommender what it needs to answer so many questions for real."""
    if family == "p-rec":
        hold_rounds(client, math.ceil(questions / CLIENTS) + 2)
    if family == "collaborative":
        send_profiles(client)
    rows = [arrival(family, number, tells=True) for number in range(CLIENTS)]
    asked = {"requests": [json.loads(row["body"]) for row in rows]}
    feedback = []
    for row, answer in zip(rows, sent(client, "/recommend/batch", asked), strict=True):
        reward = int(answer["items"][0]["id"][-1] in row["likes"])
        feedback.append({"recommendation_id": answer["recommendation_id"], "reward": reward})
    sent(client, "/feedback/batch", {"feedback": feedback})


def hold_rounds(client: httpx.Client, rounds: int) -> None:
    """Hold as many rounds as a client may come to; a third of the voters are like-minded."""
    objects = [f"object-{place}" for place in range(OBJECTS)]
    for number in range(rounds):
        others = [objects[(voter + number) % OBJECTS] for voter in range(VOTERS)]
        votes = {f"v{at}": objects[0] if at % 3 == 0 else one for at, one in enumerate(others)}
        name = f"round-{number}"
        sent(client, "/recommenders/mixed-p-rec/rounds", {"id": name, "objects": objects})
        sent(client, "/recommenders/mixed-p-rec/votes", {"round": name, "votes": votes})


def send_profiles(client: httpx.Client) -> None:
    """Send everybody's profile, and wait for a model that was trained on all of them."""
    for number in range(CLIENTS):
        items = [f"item-{(number + 13 * step) % ITEMS}" for step in range(10)]
        profile = {"client": f"client-{number}", "items": items}
        sent(client, "/recommenders/mixed-collaborative/profiles", profile)
    deadline = time.monotonic() + PATIENCE
    while trained_on(client) < CLIENTS:
        # Nothing is released for a recommender that nobody asks.
        sent(client, "/recommend", json.loads(arrival("collaborative", 0, tells=False)["body"]))
        time.sleep(0.2)
        if time.monotonic() > deadline:
            raise SystemExit(f"collaborative: no training was done within {PATIENCE:g} s")


def trained_on(client: httpx.Client) -> float:
    """Return how many profiles the released model was trained on."""
    text = client.get("/metrics").raise_for_status().text
    found = re.search(r'^discreet_profiles{recommender="mixed-collab\w+"} (\S+)$', text, re.M)
    return float(found[1]) if found else 0.0


def sent(client: httpx.Client, path: str, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Send what must not be refused, not even in part; return a batch's results."""
    reply = client.post(path, json=body)
    results: list[dict[str, Any]] = [] if reply.is_error else reply.json().get("results", [])
    if reply.is_error or any(one["status"] != 200 for one in results):
        raise SystemExit(f"{path}: {reply.text[:1_000]}")
    return results


def driven(target: Target, plan: Sequence[Row], *, rate: int, seconds: float) -> dict[str, Any]:
    """Let the arrivals come, and return k6's summary."""
    k6 = shutil.which("k6", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if k6 is None:
        raise SystemExit("k6 is needed: `make bench` installs it")
    with TemporaryDirectory() as folder:
        rows, out = Path(folder) / "plan.json", Path(folder) / "summary.json"
        rows.write_text(json.dumps(plan))
        run: dict[str, Any] = {"url": target.url, "rate": rate, "seconds": seconds}
        run |= {"plan": str(rows), "families": installed(), "statuses": STATUSES}
        given = {"MIXED": json.dumps(run), "MIXED_KEY": KEY, "K6_NO_USAGE_REPORT": "true"}
        command = [k6, "run", "--quiet", "--summary-export", str(out), str(HERE / "mixed.js")]
        # Its table is of no use here; what it complains about goes to stderr, and is seen.
        subprocess.run(command, env=os.environ | given, stdout=subprocess.DEVNULL, check=True)  # noqa: S603
        return dict(json.loads(out.read_text()))


def of_path(metrics: Mapping[str, Any], family: str, path: str) -> dict[str, Any]:
    """Return what one family's callers met with at one path."""
    tags = f"family:{family},path:{path}"
    waited = metrics[f"http_req_duration{{{tags}}}"]
    total = metrics[f"http_reqs{{{tags}}}"]["count"]
    known = {str(one): metrics[f"http_reqs{{{tags},status:{one}}}"]["count"] for one in STATUSES}
    statuses = {**known, "other": total - sum(known.values())}
    return {
        "count": total,
        "p50_ms": round(waited["med"], 2),
        "p99_ms": round(waited["p(99)"], 2),
        "failures": total - known["200"],
        "statuses": {status: many for status, many in statuses.items() if many},
    }


def report(summary: Mapping[str, Any], families: Sequence[str]) -> dict[str, Any]:
    """Return the result, from what k6 exported."""
    found = summary["metrics"]
    return {
        "reached_per_second": round(found["iterations"]["rate"], 1),
        "requests_per_second": round(found["http_reqs"]["rate"], 1),
        "dropped": found.get("dropped_iterations", {"count": 0})["count"],
        "left_out": [family for family in WEIGHTS if family not in families],
        "personalised": {one: found[f"personalised{{family:{one}}}"]["value"] for one in families},
        "families": {one: {path: of_path(found, one, path) for path in PATHS} for one in families},
    }


def mixed(target: Target, *, rate: int, seconds: float, say: Say) -> dict[str, Any]:
    """Fill a running server with all families, ask them all at once, and say how it went."""
    families, wanted = installed(), documents()
    # A second more than is needed: k6 may begin an arrival too many, and no row may come twice.
    plan = planned(families, math.ceil(rate * (seconds + 1)))
    with httpx.Client(base_url=target.url, headers=HEADERS, timeout=60) as client:
        for family in families:
            say(f"filling {family}")
            target.put(f"mixed-{family}", {"algorithm": family, **wanted[family]})
            fill(client, family, questions=sum(row["family"] == family for row in plan))
    say(f"{rate} arrivals a second for {seconds:g} seconds")
    found = report(driven(target, plan, rate=rate, seconds=seconds), families)
    return {"offered_per_second": rate, "seconds": seconds, **found}


def show(found: Mapping[str, Any]) -> None:
    """Print the table."""
    arrived = "{reached_per_second} of {offered_per_second} arrivals a second".format(**found)
    print(arrived, "{requests_per_second} requests, {dropped} dropped".format(**found), sep=", ")
    for family, paths in found["families"].items():
        print(f"{family}: {found['personalised'][family]:.1%} of the answers were personalised")
        for path, row in paths.items():
            waited = f"p50 {row['p50_ms']:8.2f} ms  p99 {row['p99_ms']:8.2f} ms"
            print(f"  /{path:9} {row['count']:7,}  {waited}  {row['failures']} failed", end="  ")
            print(*(f"{status}: {many}" for status, many in row["statuses"].items()), sep=", ")
    print("left out, because a package is not installed:", *found["left_out"] or ["nothing"])


def main() -> None:
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("--rate", type=int, default=200, help="arrivals a second (200)")
    parser.add_argument("--seconds", type=float, default=30, help="for how long (30)")
    parser.add_argument("--workers", type=int, default=1, help="of the server (1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    args = parser.parse_args()
    say = partial(print, file=sys.stderr, flush=True)
    with ExitStack() as stack:
        store = stack.enter_context(EmbeddedStore(stack.enter_context(TemporaryDirectory())))
        target = stack.enter_context(discreet(store, workers=args.workers))
        found = mixed(target, rate=args.rate, seconds=args.seconds, say=say)
    if args.json:
        print(json.dumps({"workers": args.workers, **found}))
    else:
        show(found)


if __name__ == "__main__":
    main()
