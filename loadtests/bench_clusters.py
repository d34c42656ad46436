"""How long a local server takes to find the clusters of its users, and how much memory.

    python loadtests/bench_clusters.py [--users 10000] [--dimensions 10] [--clusters 20]

Two ways are timed: by evidence, as served (`discreet.families.fclub.evidence`), and by edges
that are deleted, as published (`discreet.research.published.similarity_graph`). Users have seen between 50 and 300
items each. Prints one JSON object; seconds are of one core's time, memory is the process's largest,
the data included.
"""

import argparse
import json
import resource
import time

import numpy as np

from discreet.research.published.similarity_graph import Graph, components
from discreet.families.fclub.clusters import FederatedClusters
from discreet.research.published.fclub import certainty


def main() -> None:
    """Make users, find their clusters, print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--dimensions", type=int, default=10)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    truth = rng.integers(0, args.clusters, args.users)
    tastes = rng.normal(size=(args.clusters, args.dimensions))
    tastes /= 2 * np.linalg.norm(tastes, axis=1, keepdims=True)
    counts = rng.integers(50, 301, args.users)
    grams = np.empty((args.users, args.dimensions, args.dimensions))
    moments = np.empty((args.users, args.dimensions))
    for user, count in enumerate(counts):
        items = rng.normal(size=(count, args.dimensions))
        items /= np.linalg.norm(items, axis=1, keepdims=True)
        likes = rng.random(count) < 0.5 + items @ tastes[truth[user]]
        grams[user] = items.T @ items
        moments[user] = items.T @ (likes - 0.5)

    rule = FederatedClusters(dimensions=args.dimensions)
    started = time.process_time()
    outlook = rule.outlook(users=rule.knowledge(grams=grams, moments=moments))
    by_evidence = time.process_time() - started

    ridge = np.eye(args.dimensions)
    points = np.linalg.solve(grams + ridge, moments[..., None])[..., 0]
    radii = 2.0 * certainty(counts)
    started = time.process_time()
    graph = Graph(args.users)
    graph.delete(points=points, radii=radii)
    edges = int(graph.labels().max()) + 1
    by_edges = time.process_time() - started

    started = time.process_time()
    searched = int(components(points=points, radii=radii, precise=0.5).max()) + 1
    by_search = time.process_time() - started

    print(
        json.dumps(
            {
                "users": args.users,
                "dimensions": args.dimensions,
                "true_clusters": args.clusters,
                "evidence": {
                    "seconds": round(by_evidence, 2),
                    "clusters": outlook.clusters,
                    "purity": round(_purity(outlook.labels, truth), 4),
                },
                "edges": {"seconds": round(by_edges, 2), "clusters": edges},
                "search": {"seconds": round(by_search, 2), "clusters": searched},
                "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
            }
        )
    )


def _purity(labels: np.ndarray, truth: np.ndarray) -> float:
    """Return the share of users whose true cluster is the commonest in their found one."""
    table = np.zeros((int(labels.max()) + 1, int(truth.max()) + 1))
    np.add.at(table, (labels, truth), 1)
    return float(table.max(axis=1).sum() / len(truth))


if __name__ == "__main__":
    main()
