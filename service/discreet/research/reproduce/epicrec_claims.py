"""What the paper on EpicRec claims, judged on its own algorithm with everybody perturbed.

A comparison "at every epsilon" holds if it does at each one that was run, by the means, and surely
(beyond the 95% interval) somewhere. Where no difference is sure at any, none can be seen, and it is
not testable by these runs. How many are sure is said beside it.
"""

from collections.abc import Mapping, Sequence

from discreet.research.reproduce.epicrec_tables import (
    NAMES,
    NO_RELEASE,
    PRINTED_LOSSES,
    QUANTIFIED,
    RatioEstimate,
    Table,
    below,
    epsilons,
    gain,
    loss,
    mean,
    references,
)
from discreet.research.reproduce.epicrec_theorems import (
    BEYOND,
    LeakRuns,
    PublicFacts,
    algorithm,
    beyond_claim,
    calibration_claims,
    privacy_claims,
    theorem_claim,
)
from discreet.research.reproduce.epicrec_trials import (
    GS,
    LPA,
    NOTHING,
    OUR_PHASE_2,
    PUBLISHED,
    RAW,
)
from discreet.research.reproduce.verdicts import PaperClaim, Verdict, held

SECONDS = {"single": 0.7, "category": 1.5}

_SIMILAR = 0.02
"""By how much a loss may still fall where it is called stable."""


def claims_of(
    found: Mapping[str, Table],
    known: Mapping[str, PublicFacts],
    *,
    example: Sequence[float],
    leak: LeakRuns,
) -> list[PaperClaim]:
    """Return every claim with its verdict."""
    names = list(found)
    return [
        *calibration_claims(known, example),
        *privacy_claims(known, leak),
        *(theorem_claim(name, found[name], system) for name in names for system in NAMES),
        *(beyond_claim(name, found[name], system) for name in names for system in NAMES),
        *(
            _counts(name, found[name], system, rival)
            for system in NAMES
            for name in names
            for rival in (LPA, GS)
        ),
        *(_printed_loss(name, found[name]) for name in names),
        *(_printed_loss(name, found[name], sets=True) for name in names),
        *(_recommendations(name, found[name], system) for system in NAMES for name in names),
        *(_counts_suffice(name, found[name]) for name in names),
        *(_slightly_worse(name, found[name]) for name in names),
        *(_no_release(name, found[name]) for name in names),
        *(_quantified(name, known[name]) for name in names),
        *(_quantified_by_category(name, known[name]) for name in names),
        _line_7(known),
        *(_stable(name, found[name], known[name]) for name in names),
        *_times(found, known),
        PaperClaim(
            "it improves on Shen and Jin 2014 [24] in privacy and in utility",
            "sections 1 and 2",
            published="no number",
            ours="no number",
            verdict="not testable",
            why="the paper itself does not compare with [24], which is for epsilon above 1",
        ),
        PaperClaim(
            "people prefer one control for everything and one by category",
            "section 3.1",
            published="505 participants",
            ours="nobody was asked",
            verdict="not testable",
            why="it takes people, not runs",
        ),
    ]


def _counts(name: str, found: Table, system: str, rival: str) -> PaperClaim:
    several = epsilons(found, system)
    gains = [
        below(found, (system, PUBLISHED, epsilon), (system, rival, epsilon)) for epsilon in several
    ]
    other = NAMES[system][rival]
    ours = _ours(found, system, rival)
    both = [f"with our phase 2 {_range(ours)}"] if ours else []
    return PaperClaim(
        f"{algorithm(system)} has less error in the counts than {other}, at every epsilon",
        f"figure {_figure(system)}a, {name}",
        published="up to 10% less" if system == "single" else "less",
        ours=_range(gains),
        verdict=_judged(gains),
        why="; ".join([_where(several, gains), *both]),
    )


def _ours(found: Table, system: str, rival: str) -> list[RatioEstimate]:
    """Return the same comparison with our sanitisation, over what a hub counts."""
    keys = [
        (key, (system, f"{rival}, our phase 2", key[2]))
        for key in found
        if key[:2] == (system, OUR_PHASE_2)
    ]
    field = "aggregate" if system == "single" else "own"
    return [below(found, mine, other, field) for mine, other in keys if other in found]


def _printed_loss(name: str, found: Table, *, sets: bool = False) -> PaperClaim:
    epsilon, most = PRINTED_LOSSES.get(name, (0.2, 0.05))
    seen = loss(found["single", PUBLISHED, epsilon], "sets_" if sets else "")
    nothing = loss(found[NOTHING, NOTHING, 0.0], "sets_" if sets else "")
    reading = "from sets of items alone" if sets else "with the ratings that belong to them"
    empty = nothing.value <= most
    unsure = not empty and abs(seen.value - most) <= seen.half
    return PaperClaim(
        f"the MAE loss is at most {most:.0%} at epsilon {epsilon:g}, {reading}",
        f"figure 5b, {name}",
        published=f"up to {most:.0%}",
        ours=seen.percent(),
        verdict="not testable" if empty or unsure else held(seen.value <= most),
        why=f"sending nothing at all loses {nothing.percent()}"
        + (", so there is nothing that this bound could tell" if empty else "")
        + (": without ratings a raw history predicts no better" if empty and sets else "")
        + (f"; {most:.0%} is within the interval, so nothing is sure" if unsure else "")
        + (
            ""
            if sets
            else ". The paper does not say which rating an item carries that its sender "
            "never rated; here it is the public mean"
        ),
    )


def _recommendations(name: str, found: Table, system: str) -> PaperClaim:
    several = epsilons(found, system)
    gains = {
        rival: [
            gain(found, (system, PUBLISHED, epsilon), (system, rival, epsilon))
            for epsilon in several
        ]
        for rival in (LPA, GS)
    }
    return PaperClaim(
        f"{algorithm(system)} has the least MAE loss, at every epsilon",
        f"figure {_figure(system)}b, {name}",
        published="a picture",
        ours="points of loss: "
        + "; ".join(f"{_range(many)} than {NAMES[system][rival]}" for rival, many in gains.items()),
        verdict=_judged([one for many in gains.values() for one in many]),
        why="; ".join(
            f"{NAMES[system][rival]}: {_where(several, many)}" for rival, many in gains.items()
        ),
    )


def _counts_suffice(name: str, found: Table) -> PaperClaim:
    key = ("single", PUBLISHED, BEYOND)
    kept, seen = mean(found[key], "aggregate").value, loss(found[key])
    nothing, raw = references(found)[NOTHING], references(found)[RAW]
    gains = mean(found[key], "ndcg").value
    return PaperClaim(
        "counts by category that are kept well guarantee good recommendations",
        f"section 4.1.2, {name}",
        published="sufficient",
        ours=f"at epsilon {BEYOND:g} counts err by {kept:.1f}, and {seen.percent()} is lost",
        verdict=held(seen.value < nothing["mae_loss"] / 2 and gains > nothing["ndcg10"]),
        why=f"holds if less than half is lost of what nothing at all loses "
        f"({nothing['mae_loss']:.1%}) and items rank better (NDCG@10 {gains:.3f}; nothing "
        f"{nothing['ndcg10']:.3f}, raw {raw['ndcg10']:.3f}): which items they are matters",
    )


def _slightly_worse(name: str, found: Table) -> PaperClaim:
    shared = [one for one in epsilons(found, "category") if ("single", PUBLISHED, one) in found]
    worse = [
        gain(found, ("single", PUBLISHED, one), ("category", PUBLISHED, one)) for one in shared
    ]
    return PaperClaim(
        "recommendations by M-DPDP are slightly worse than by S-DPDP",
        f"figure 6b, {name}",
        published="slightly worse",
        ours="points of loss: " + _range(worse, less="worse", more="better"),
        verdict=_judged(worse),
        why='a third of all categories say "all", so some items leave as they are, with their '
        "ratings: that helps more than what is hidden hurts",
    )


def _no_release(name: str, found: Table) -> PaperClaim:
    several = epsilons(found, "category")
    tables = [found["category", PUBLISHED, one] for one in several]
    worse = [loss(one, "hidden_").value - loss(one, "protected_").value for one in tables]
    latest = tables[-1]
    return PaperClaim(
        'the MAE loss on items of "no release" categories is less than 5% worse than on those of '
        '"perturbed release" ones',
        f"figure 6b, {name}",
        published="less than 5% worse",
        ours=f"{min(worse):+.1%} to {max(worse):+.1%}; at epsilon {several[-1]:g} "
        f"{loss(latest, 'hidden_').percent()} against {loss(latest, 'protected_').percent()}",
        verdict=held(max(worse) < NO_RELEASE),
        why="they are predicted from what else was sent, with the ratings that belong to it",
    )


def _quantified(name: str, one: PublicFacts) -> PaperClaim:
    middle, least, most = one.epsilons["single"]
    printed = QUANTIFIED.get(name, {}).get("single")
    return PaperClaim(
        "S-PBQ proposes an epsilon of about " + ("–" if printed is None else f"{printed:g}"),
        f"figure 5, {name}",
        published="–" if printed is None else f"{printed:g}",
        ours=f"{middle:g} ({least:g} to {most:g})",
        verdict="not testable" if printed is None else held(least <= printed <= most),
        why="mean and range over runs, by the rule that the text gives; holds if the published "
        "value is in the range. The order of magnitude is the published one"
        + ("" if name != "yelp" else "; another Yelp than the paper's"),
    )


def _quantified_by_category(name: str, one: PublicFacts) -> PaperClaim:
    single, category = one.epsilons["single"][0], one.by_category
    printed = QUANTIFIED.get(name, {})
    return PaperClaim(
        "M-PBQ proposes more than S-PBQ",
        f"figure 6, {name}",
        published=f"{printed['category']:g} against {printed['single']:g}" if printed else "more",
        ours=f"{category[0]:g} ({category[1]:g} to {category[2]:g}) against {single:g}",
        verdict=held(category[0] > single),
        why=f"program 5.4 as published, levels at random; what a hub proposes is "
        f"{one.epsilons['category'][0]:g}",
    )


def _line_7(known: Mapping[str, PublicFacts]) -> PaperClaim:
    return PaperClaim(
        "Algorithm 2 finds the epsilon after which utility no longer gains much",
        "algorithm 2, line 7",
        published="0.23 and 0.25",
        ours=", ".join(f"{one.line_7[0]:g} ({name})" for name, one in known.items()),
        verdict=held(all(one.line_7[0] > 0.1 for one in known.values())),
        why="line 7 has the opposite sign of the text and stops nearly at once, everywhere; the "
        "rows above follow the text",
    )


def _stable(name: str, found: Table, one: PublicFacts) -> PaperClaim:
    proposed = one.epsilons["single"][0]
    near = min(epsilons(found, "single"), key=lambda each: abs(each - proposed))
    last = epsilons(found, "single")[-1]
    first = epsilons(found, "single")[0]
    falls = gain(found, ("single", PUBLISHED, last), ("single", PUBLISHED, near))
    before = gain(found, ("single", PUBLISHED, near), ("single", PUBLISHED, first))
    return PaperClaim(
        "beyond the proposed epsilon the loss does not fall much any more",
        f"figure 5b, {name}",
        published="relatively stable",
        ours=f"falls by {falls.percent()} in points from epsilon {near:g} to {last:g}",
        verdict=held(falls.value < _SIMILAR),
        why=f"holds if that is below {_SIMILAR:.0%}. From epsilon {first:g} to {near:g} it falls "
        f"by {before.percent()}",
    )


def _times(found: Mapping[str, Table], known: Mapping[str, PublicFacts]) -> list[PaperClaim]:
    seconds = {
        system: {
            name: max(
                mean(table[system, PUBLISHED, each], "seconds").value
                for each in epsilons(table, system)
            )
            for name, table in found.items()
        }
        for system in SECONDS
    }
    quantify = {
        system: max(one.seconds[f"quantification_{system}"] for one in known.values())
        for system in SECONDS
    }
    longest = {system: max(each.values()) for system, each in seconds.items()}
    return [
        PaperClaim(
            "a release takes at most 0.7 s (S-EpicRec) and 1.5 s (M-EpicRec)",
            "figure 7",
            published="0.7 s and 1.5 s",
            ours=f"{longest['single'] * 1000:.0f} ms and {longest['category'] * 1000:.0f} ms",
            verdict=held(all(longest[system] <= most for system, most in SECONDS.items())),
            why="seconds of one core of another machine, with a solver over groups of items that "
            "are interchangeable; proposing an epsilon, once for a choice of levels, takes "
            f"{quantify['single']:.1f} s and {quantify['category']:.1f} s as served",
        ),
        PaperClaim(
            "M-EpicRec takes longer than S-EpicRec",
            "figure 7",
            published="1.5 s against 0.7 s",
            ours="; ".join(
                f"{name} {seconds['category'][name] * 1000:.1f} ms against "
                f"{seconds['single'][name] * 1000:.1f} ms"
                for name in found
            ),
            verdict=held(
                all(seconds["category"][name] > seconds["single"][name] for name in found)
            ),
            why="means over people at the slowest epsilon, with what a new choice of levels takes "
            "to be compiled",
        ),
    ]


def _judged(gains: Sequence[RatioEstimate]) -> Verdict:
    sure = any(one.sure or RatioEstimate(-one.value, one.half).sure for one in gains)
    return held(all(one.value > 0 for one in gains)) if sure else "not testable"


def _range(gains: Sequence[RatioEstimate], *, less: str = "less", more: str = "more") -> str:
    """Say from where to where the gains go."""
    least, most = min(one.value for one in gains), max(one.value for one in gains)
    if least < 0 < most:
        return f"{-least:.1%} {more} to {most:.1%} {less}"
    if most <= 0:
        return f"{-most:.1%} to {-least:.1%} {more}"
    return f"{least:.1%} to {most:.1%} {less}"


def _where(several: Sequence[float], gains: Sequence[RatioEstimate], *, more: str = "more") -> str:
    """Say at which epsilons it is so, and how surely."""
    surely = [f"{epsilon:g}" for epsilon, one in zip(several, gains, strict=True) if one.sure]
    against = [
        f"{epsilon:g}"
        for epsilon, one in zip(several, gains, strict=True)
        if RatioEstimate(-one.value, one.half).sure
    ]
    said = f"surely less at {len(surely)} of {len(gains)} epsilons"
    return said + (f", surely {more} at {', '.join(against)}" if against else "")


def _figure(system: str) -> int:
    return 5 if system == "single" else 6
