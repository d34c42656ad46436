"""An example for every operation: the OpenAPI document shows it, and tests send it to a server.

What a server hands out (recommendation ids, codes, seals, …) stands here as text in <>: put there
what you were given.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

RECOMMENDATION_ID = "<recommendation_id>"
CODE = "<code>"
DEVICE = "<id of the device>"
KEY_ID = "<id of the key>"
HANDLE = "<handle>"
CERTIFICATE = {"<what was answered>": "…"}
SEAL = "<seal>"

FIRST = "contextual"
"""The algorithm whose examples stand where a call is shown for all of them."""

NAMES: Mapping[str, str] = {
    "contextual": "films",
    "p-dap": "places",
    "fclub": "songs",
    "mirror-descent": "offers",
    "p-rec": "news",
    "collaborative": "books",
}
DOCUMENTS: Mapping[str, Mapping[str, Any]] = {
    "contextual": {
        "algorithm": "contextual",
        "items": ["Night Ferry", {"id": "Eleven Kites", "title": "Eleven Kites (1974)"}],
        "context": {"dimensions": 2},
        "privacy": {
            "answers": {"epsilon": 0.1, "budget": {"epsilon": 8, "delta": 1e-6, "per": "30d"}},
            "feedback": {"epsilon": 1, "budget": {"epsilon": 8, "delta": 1e-6, "per": "30d"}},
        },
    },
    "p-dap": {
        "algorithm": "p-dap",
        "items": ["harbour", "castle", "market"],
        "context": {"dimensions": 2},
    },
    "fclub": {
        "algorithm": "fclub",
        "role": "local",
        "dimensions": 2,
        "items": [
            {"id": "waltz", "features": [0.6, 0.8]},
            {"id": "polka", "features": [0.8, -0.6]},
        ],
    },
    "mirror-descent": {
        "algorithm": "mirror-descent",
        "features": {"clients": 100, "items": 100},
        "items": [
            {"id": "umbrella", "features": {"indices": [3, 17], "values": [1.0, 0.5]}},
            {"id": "sandals", "features": {"indices": [4], "values": [1.0]}},
        ],
    },
    "p-rec": {
        "algorithm": "p-rec",
        "objects": 2,
        "horizon": 60,
        "peers": 150,
        "voters": 1_000,
        "privacy": {"budget": {"epsilon": 20, "delta": 1e-6}},
    },
    "collaborative": {
        "algorithm": "collaborative",
        "items": [
            {"id": "b1", "title": "Emma", "categories": ["novels"]},
            {"id": "b2", "title": "Faust", "categories": ["plays"]},
        ],
    },
}
QUESTIONS: Mapping[str, Mapping[str, Any]] = {
    "contextual": {"context": [0.2, 0.7]},
    "p-dap": {"context": [0.2, 0.7]},
    "fclub": {},
    "mirror-descent": {"features": {"indices": [5], "values": [1.0]}},
    "p-rec": {},
    "collaborative": {"category": "novels"},
}
ITEMS: Mapping[str, list[Any]] = {
    "contextual": ["Salt and Snow", {"id": "Paper Lanterns", "attributes": {"year": 1991}}],
    "p-dap": ["bridge", {"id": "tower", "hidden": True}],
    "fclub": [{"id": "tango", "features": [0.0, 1.0]}],
    "mirror-descent": [{"id": "scarf", "features": {"indices": [9], "values": [1.0]}}],
    "p-rec": [{"id": "cats", "title": "Cats"}],
    "collaborative": [{"id": "b3", "title": "Persuasion", "categories": ["novels"]}],
}


@dataclass(frozen=True)
class OperationExample:
    """What to send: parameters by name, and a body."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None


def examples_for(algorithm: str) -> dict[str, OperationExample]:
    """Return an example by operation id, for a recommender of this algorithm."""
    name, client = NAMES[algorithm], "client-17"
    named, told = {"name": name}, {"recommendation_id": RECOMMENDATION_ID}
    question = {"recommender": name, "client": client, **QUESTIONS[algorithm]}
    items = ITEMS[algorithm]
    item = items[-1] if isinstance(items[-1], str) else items[-1]["id"]
    of_item, of_round = {**named, "item": item}, {**named, "round_id": "monday"}
    of_client, divided = {"client": client}, {"name": "front-page"}
    reward = {**told, "reward": 1}
    change = {"title": "Another title"} if algorithm == "p-rec" else {"hidden": True}
    return {
        "recommend": OperationExample(body=question),
        "recommend_batch": OperationExample(body={"requests": [question]}),
        "feedback": OperationExample(body=reward),
        "feedback_batch": OperationExample(body={"feedback": [reward]}),
        "activate": OperationExample(body=told),
        "put_recommender": OperationExample(named, DOCUMENTS[algorithm]),
        "patch_recommender": OperationExample(named, {"decision_ttl_seconds": 3600}),
        "show_recommender": OperationExample({**named, "items": False}),
        "remove_recommender": OperationExample(named),
        "list_recommenders": OperationExample(),
        "show_guarantee": OperationExample(named),
        "list_items": OperationExample({**named, "limit": 100}),
        "add_items": OperationExample(named, {"items": items}),
        "import_items": OperationExample(named, "\n".join(map(json.dumps, items))),
        "change_item": OperationExample(of_item, change),
        "remove_item": OperationExample(of_item),
        "show_budget": OperationExample({**of_client, "recommender": name}),
        "show_statement": OperationExample(of_client),
        "erase": OperationExample(of_client),
        "verify_erasure": OperationExample(body={"certificate": CERTIFICATE, "seal": SEAL}),
        "offer_code": OperationExample(
            body={"client": client, "recommenders": [name], "label": "Ada's tablet"}
        ),
        "redeem_code": OperationExample(body={"code": CODE}),
        "list_devices": OperationExample(of_client),
        "revoke_device": OperationExample({**of_client, "device": DEVICE}),
        "list_keys": OperationExample(),
        "revoke_key": OperationExample({"key": KEY_ID}),
        "alive": OperationExample(),
        "ready": OperationExample(),
        "metrics": OperationExample(),
        "list_experiments": OperationExample(),
        "put_experiment": OperationExample(
            divided, {"traffic": {"champion": 0.8, "challenger": 0.2}}
        ),
        "show_experiment": OperationExample(divided),
        "remove_experiment": OperationExample(divided),
        "show_results": OperationExample(divided),
        # What only some algorithms have.
        "explain": OperationExample(named, _to_explain(algorithm, client)),
        "show_map": OperationExample(named),
        "forward": OperationExample(named, {"centre": [0.25, 0.75], "epsilon": 0.5}),
        "peer_feedback": OperationExample(named, {"handle": HANDLE, "reward": 1}),
        "open_handle": OperationExample(body={"handle": HANDLE}),
        "take_updates": OperationExample(
            {"name": "all-songs"},
            {"source": "0123456789abcdef", "dimensions": 2, "baseline": 0.5, "updates": []},
        ),
        "give_merged_model": OperationExample(
            {"name": "all-songs"}, {"source": "0123456789abcdef", "seen": -1}
        ),
        "give_model": OperationExample(named, {"seen": ""}),
        "personalizer_rank": OperationExample(
            body={
                "eventId": "event-17",
                "contextFeatures": [{"timeOfDay": "morning"}, {"user": {"id": "user-17"}}],
                "actions": [
                    {"id": "pastry", "features": [{"taste": "sweet", "calories": 300}]},
                    {"id": "soup", "features": [{"taste": "salty", "calories": 150}]},
                ],
            }
        ),
        "personalizer_reward": OperationExample({"event": "event-17"}, {"value": 1}),
        "personalizer_activate": OperationExample({"event": "event-17"}),
        "make_round": OperationExample(named, {"id": "monday", "objects": ["cats", "dogs"]}),
        "list_rounds": OperationExample(named),
        "show_round": OperationExample(of_round),
        "close_round": OperationExample(of_round, {"state": "closed"}),
        "post_votes": OperationExample(
            named, {"round": "monday", "votes": {"ada": "cats", "bob": "dogs"}}
        ),
        "catalogue": OperationExample(named),
        "popular": OperationExample({**named, "limit": 10}),
        "post_profile": OperationExample(named, {**of_client, "items": ["b1", "b2"]}),
    }


def _to_explain(algorithm: str, client: str) -> dict[str, Any]:
    """Return a question to explain: only federated clusters look at a client's own sums."""
    if algorithm == "fclub":
        return {"client": client}
    told = {
        name: QUESTIONS[algorithm][name]
        for name in ("context", "features")
        if name in QUESTIONS[algorithm]
    }
    return {**told, "most": 3}


def add_examples(document: dict[str, Any], algorithm: str = FIRST) -> None:
    """Write the examples into an OpenAPI document, where it has the operation."""
    if algorithm not in NAMES:
        return
    own = {each: examples_for(each) for each in NAMES}
    for methods in document["paths"].values():
        for operation in methods.values():
            name = operation["operationId"]
            family = algorithm if algorithm != FIRST else _FAMILY_OF.get(name, FIRST)
            example = own[family].get(name)
            if example is None:
                continue
            for parameter in operation.get("parameters", ()):
                if parameter["name"] in example.parameters:
                    parameter["example"] = example.parameters[parameter["name"]]
            for content in operation.get("requestBody", {}).get("content", {}).values():
                if example.body is not None:
                    content["example"] = example.body


_FAMILY_OF = {
    "forward": "p-dap",
    "peer_feedback": "p-dap",
    "open_handle": "p-dap",
    "take_updates": "fclub",
    "give_merged_model": "fclub",
    "give_model": "mirror-descent",
    "personalizer_rank": "mirror-descent",
    "personalizer_reward": "mirror-descent",
    "personalizer_activate": "mirror-descent",
    "make_round": "p-rec",
    "list_rounds": "p-rec",
    "show_round": "p-rec",
    "close_round": "p-rec",
    "post_votes": "p-rec",
    "catalogue": "collaborative",
    "popular": "collaborative",
    "post_profile": "collaborative",
}
"""Whose example stands in the document of all algorithms."""
