"""What synthetic callers say is what the document takes, and says where they are."""

from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from discreet.families.contexts import ContextDocument
from discreet.research.worlds.callers import coordinates, describing, plain

READ: TypeAdapter[Any] = TypeAdapter(ContextDocument)
NAMED = READ.validate_python(
    {
        "fields": {
            "member": {"type": "boolean"},
            "age": {"type": "number", "range": [20, 60], "required": True},
            "country": {"type": "category", "values": ["FR", "CH"]},
            "shop": {"type": "category"},
        }
    }
)


def test_a_vector_is_the_point_itself() -> None:
    vector = READ.validate_python({"dimensions": 3})
    assert coordinates(vector) == 3
    point = np.array([0.1, 0.2, 0.3])
    assert describing(vector)(point) is point
    assert plain(point) is point


def test_fields_say_a_coordinate_each_in_the_order_of_names() -> None:
    assert coordinates(NAMED) == 4
    describe = describing(NAMED)
    assert describe(np.array([0.25, 0.0, 0.99, 0.9])) == {
        "age": 30.0,
        "country": "CH",
        "member": True,
        "shop": "shop 7",
    }
    assert describe(np.ones(4)) == {"age": 60.0, "country": "FR", "member": True, "shop": "shop 7"}
    with pytest.raises(ValueError, match="argument"):
        describe(np.ones(5))


def test_what_is_said_is_accepted_and_tells_places_apart() -> None:
    read, describe = NAMED.reader(), describing(NAMED)
    rng = np.random.default_rng(0)
    seen = {read(describe(point)) for point in rng.random((200, 4))}
    assert len(seen) == 200
