"""Claims and their verdicts."""

from discreet.research.reproduce.verdicts import PaperClaim, bound_claim, held, number, span


def test_a_claim_is_a_row_of_text() -> None:
    claim = PaperClaim("less regret", "figure 6", "20%", "31%", held(True), "five seeds")
    assert list(claim.row()) == ["paper_says", "where", "published", "ours", "verdict", "why"]
    assert claim.row()["verdict"] == "holds"


def test_a_bound_holds_up_to_itself() -> None:
    verdicts = [
        bound_claim("at most", "theorem 1", bound=2.0, ours=ours, why="computed").verdict
        for ours in (1.0, 2.0, 2.1)
    ]
    assert verdicts == ["holds", "holds", "fails"]
    assert held(False) == "fails"


def test_numbers_are_written_for_people() -> None:
    assert [number(value) for value in (0.012345, 3.14159, 12_345.6)] == ["0.012", "3.1", "12,346"]
    assert span([2.0, 1.0, 3.0]) == "1 to 3"
    assert span([2.0, 2.01]) == "2"
