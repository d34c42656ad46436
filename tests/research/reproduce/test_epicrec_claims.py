"""The claims of the paper on EpicRec, judged on numbers that are known."""

from discreet.research.reproduce.epicrec_claims import claims_of
from discreet.research.reproduce.epicrec_tables import Table
from discreet.research.reproduce.epicrec_theorems import EXAMPLE, LeakRuns, PublicFacts
from discreet.research.reproduce.epicrec_trials import FIELDS, GS, LPA, NOTHING, PUBLISHED
from discreet.research.reproduce.verdicts import PaperClaim
from tests.research.reproduce.epicrec_found import Invent, invented, public


def judged(found: Table, known: PublicFacts | None = None) -> list[PaperClaim]:
    return claims_of(
        {"movielens": found},
        {"movielens": known or public()},
        example=EXAMPLE,
        leak=LeakRuns(40, 40, 0),
    )


def claim(start: str, found: Table, known: PublicFacts | None = None) -> PaperClaim:
    (one,) = [one for one in judged(found, known) if one.paper_says.startswith(start)]
    return one


def rivals(counts: float, **fields: float) -> Invent:
    """Let the published algorithm have its usual error, and each rival so many times that."""

    def invent(system: str, method: str, epsilon: float) -> dict[str, float]:
        if method not in (LPA, GS):
            return {}
        return {"aggregate": counts * 2 / epsilon, **fields}

    return invent


def test_a_rival_with_more_error_at_every_epsilon_makes_the_figure_hold() -> None:
    found = invented(rivals(1.25, error=21.0))
    one = claim("S-DPDP has less error in the counts than Pseudo-GS", found)
    assert (one.verdict, one.where) == ("holds", "figure 5a, movielens")
    assert "surely less at 4 of 4 epsilons" in one.why
    assert "less" in one.ours
    assert claim("M-DPDP has the least MAE loss", found).verdict == "holds"


def test_a_rival_that_is_better_at_one_epsilon_makes_it_fail() -> None:
    def invent(system: str, method: str, epsilon: float) -> dict[str, float]:
        return (
            {"aggregate": (0.8 if epsilon == 0.05 else 1.2) * 2 / epsilon} if method == GS else {}
        )

    one = claim("S-DPDP has less error in the counts than Pseudo-GS", invented(invent))
    assert one.verdict == "fails"
    assert "surely more at 0.05" in one.why
    assert "% more to " in one.ours


def test_a_difference_that_cannot_be_seen_is_not_judged() -> None:
    assert claim("S-DPDP has the least MAE loss", invented()).verdict == "not testable"


def test_a_loss_is_judged_where_there_is_something_to_lose() -> None:
    says = "the MAE loss is at most 5% at epsilon 0.2, with the ratings"
    assert claim(says, invented()).verdict == "holds"
    lost = invented(lambda system, method, epsilon: {"error": 21.4} if method == PUBLISHED else {})
    assert claim(says, lost).verdict == "fails"
    empty = invented(lambda system, method, epsilon: {"error": 20.6} if method == NOTHING else {})
    one = claim(says, empty)
    assert one.verdict == "not testable"
    assert "nothing at all loses 3.0%" in one.why
    unsure = dict(invented())
    unsure["single", PUBLISHED, 0.2] = unsure["single", PUBLISHED, 0.2].copy()
    unsure["single", PUBLISHED, 0.2][:5, FIELDS.index("error")] *= 1.06
    one = claim(says, unsure)
    assert one.verdict == "not testable"
    assert "5% is within the interval" in one.why


def test_no_release_may_be_a_little_worse() -> None:
    says = 'the MAE loss on items of "no release" categories'
    assert claim(says, invented()).verdict == "holds"
    worse = invented(lambda system, method, epsilon: {"hidden_error": 8.9})
    one = claim(says, worse)
    assert one.verdict == "fails"
    assert one.ours.startswith("+7.2%")


def test_by_category_has_to_be_worse_to_be_slightly_worse() -> None:
    says = "recommendations by M-DPDP"
    worse = invented(
        lambda system, method, epsilon: {"error": 21.0} if system == "category" else {}
    )
    assert claim(says, worse).verdict == "holds"
    better = invented(
        lambda system, method, epsilon: {"error": 20.2} if system == "category" else {}
    )
    assert claim(says, better).verdict == "fails"
    assert "better" in claim(says, better).ours


def test_counts_suffice_if_recommendations_follow() -> None:
    says = "counts by category that are kept well"
    assert claim(says, invented()).verdict == "fails"  # ranks worse than nothing
    follows = invented(
        lambda system, method, epsilon: {"ndcg": 0.35} if method == PUBLISHED else {}
    )
    assert claim(says, follows).verdict == "holds"


def test_quantified_epsilons_are_set_beside_the_published() -> None:
    found = invented()
    assert claim("S-PBQ proposes", found).verdict == "holds"
    assert claim("M-PBQ proposes more", found).verdict == "holds"
    assert claim("Algorithm 2 finds", found).verdict == "fails"
    small = public(
        epsilons={"single": (0.18, 0.16, 0.2), "category": (0.2, 0.1, 0.3)},
        by_category=(0.17, 0.1, 0.2),
    )
    assert claim("S-PBQ proposes", found, small).verdict == "fails"
    assert claim("M-PBQ proposes more", found, small).verdict == "fails"


def test_a_loss_that_still_falls_is_not_stable() -> None:
    says = "beyond the proposed epsilon"
    assert claim(says, invented()).verdict == "holds"
    falling = invented(
        lambda system, method, epsilon: {"error": 21.0} if 0 < epsilon < 1 else {"error": 20.2}
    )
    assert claim(says, falling).verdict == "fails"


def test_times_are_compared_with_the_papers() -> None:
    assert claim("a release takes at most", invented()).verdict == "holds"
    slow = invented(lambda system, method, epsilon: {"seconds": 0.8})
    assert claim("a release takes at most", slow).verdict == "fails"
    longer = invented(
        lambda system, method, epsilon: {"seconds": 0.008} if system == "category" else {}
    )
    assert claim("M-EpicRec takes longer", longer).verdict == "holds"
    assert claim("M-EpicRec takes longer", invented()).verdict == "fails"


def test_every_claim_has_its_reason_and_none_is_said_twice() -> None:
    claims = judged(invented(rivals(1.25, error=21.0)))
    assert all(all(one.row().values()) for one in claims)
    assert len({(one.paper_says, one.where) for one in claims}) == len(claims)
    untested = [one.paper_says for one in claims if one.verdict == "not testable"]
    # Here both controls are the same in everything.
    assert untested == [
        "recommendations by M-DPDP are slightly worse than by S-DPDP",
        "it improves on Shen and Jin 2014 [24] in privacy and in utility",
        "people prefer one control for everything and one by category",
    ]
