"""A recommender keeps what it is given, and answers from one model at a time."""

from tests.families.p_dap.places import recommender


def test_a_model_is_adopted_as_a_whole() -> None:
    one = recommender()
    before = one.current
    model = one.blank()
    one.adopt(number=3, released_at=7.0, model=model)
    assert (one.current.number, one.current.released_at) == (3, 7.0)
    assert one.current.model is model
    assert before.number == 0
