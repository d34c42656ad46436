"""A sixth family is served end to end by registering it: routes, ledger, releases, card."""

import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from discreet.families.contract import Resources
from discreet.families.observer import NullObserver
from discreet.families.peering import NoPeers
from discreet.families.questions import Ask
from discreet.families.stored import StoredDocument
from discreet.research.noise import SeededNoise
from discreet.state.memory import MemoryStore
from discreet.state.principals import Principals
from tests.demo_server import Demo, demo_server
from tests.sixth_family.document import OverallDocument
from tests.sixth_family.learning import COUNTS
from tests.sixth_family.recommender import OverallRecommender
from tests.waiting import wait_for

DOCUMENT: dict[str, Any] = {
    "algorithm": "best-overall",
    "items": ["dull", "good", "bad"],
    "privacy": {"feedback": {"epsilon": 8.0, "budget": {"epsilon": 50.0}}},
    "releases": {"seconds": 0.2, "growth": 0.0},
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    program = (sys.executable, "-m", "tests.sixth_family.server")
    with demo_server(tmp_path_factory.mktemp("sixth"), program=program) as running:
        running.call("PUT", "/recommenders/hits", DOCUMENT)
        yield running


def give_feedback(served: Demo, clients: int) -> None:
    """Let people like one item, and not the others, whichever they are shown."""
    for item, reward in (("good", 1.0), ("dull", 0.0), ("bad", 0.0)):
        asks = [
            {"recommender": "hits", "client": f"{item}-{n}-{time.time_ns()}", "candidates": [item]}
            for n in range(clients)
        ]
        answers = served.call("POST", "/recommend/batch", {"requests": asks})["results"]
        told = [
            {"recommendation_id": one["recommendation_id"], "reward": reward} for one in answers
        ]
        results = served.call("POST", "/feedback/batch", {"feedback": told})["results"]
        assert all(one["learned"] for one in results)


def test_it_learns_from_released_counts(served: Demo) -> None:
    """Noise of deviation 0.9 a release, and 100 likes: one release is enough, whatever is drawn."""
    give_feedback(served, 100)

    def best() -> Any:
        ask = {"recommender": "hits", "client": f"c{time.time_ns()}", "limit": 3}
        answer = served.call("POST", "/recommend", ask)
        return answer if answer["items"][0]["id"] == "good" else None

    answer = wait_for("the best item", best)
    assert answer["personalised"] is False
    assert answer["reason"] == "the ranking ignores the client"


def test_its_card_and_its_ledger_are_served(served: Demo) -> None:
    card = served.call("GET", "/recommenders/hits/guarantee")
    assert card["algorithm"] == "best-overall"
    assert card["feedback"]["epsilon"] == 8.0
    ask = {"recommender": "hits", "client": "ada"}
    token = served.call("POST", "/recommend", ask)["recommendation_id"]
    served.call("POST", "/feedback", {"recommendation_id": token, "reward": 1.0})
    budget = served.call("GET", "/clients/ada/budget?recommender=hits")
    assert budget["feedback"]["spent"]["epsilon"] == pytest.approx(8.0, abs=0.01)


def test_its_document_is_validated_like_any_other(served: Demo) -> None:
    answer = httpx.put(
        f"{served.url}/recommenders/wrong",
        json={**DOCUMENT, "surprise": 1},
        headers={"Authorization": f"Bearer {served.key}"},
        timeout=120,
    )
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "surprise"


def test_it_is_removed_like_any_other(served: Demo) -> None:
    served.call("PUT", "/recommenders/gone", DOCUMENT)
    headers = {"Authorization": f"Bearer {served.key}"}
    gone = httpx.delete(f"{served.url}/recommenders/gone", headers=headers, timeout=120)
    assert gone.status_code == 204
    assert "gone" not in served.call("GET", "/recommenders")["recommenders"]


def test_a_release_covers_every_item_with_noise() -> None:
    document = OverallDocument.model_validate(DOCUMENT)
    stored = StoredDocument(document, b"generate", 0.0, {}, 0).with_document(document)
    one = OverallRecommender(
        name="hits",
        stored=stored,
        resources=Resources(
            store=MemoryStore(),
            noise=SeededNoise(0),
            observer=NullObserver(),
            principals=Principals(bytes(32)),
            peers=NoPeers(),
            clock=lambda: 0.0,
        ),
    )
    model = one.release(one.blank(), {COUNTS: np.array([2**20])}, SeededNoise(1))
    assert (model.liked != 0).all()
    assert (model.disliked != 0).all()
    again = one.decode(one.encode(model))
    assert np.array_equal(again.liked, model.liked)
    (decision,) = one.decide(model, [one.question(Ask("hits", "c"))], [None], SeededNoise(0))
    assert not decision.personalised
