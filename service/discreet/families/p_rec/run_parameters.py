"""What a client's run costs and promises, from its public parameters. The proofs are in `model`.

`VotingParameters` holds the paper's parameters and its own theorems, `RunParameters` what is
served: where the test draws its line, and what a run is charged. `parameters_for` finds the
cheapest test for given peers, `parameters_within` the fewest peers for a given epsilon.
"""

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

from discreet.errors import InvalidArgument
from discreet.families.p_rec.credits import MOST_CREDIT, MOST_OBJECTS
from discreet.privacy.events import ApproximateRelease
from discreet.privacy.truncated import TruncatedExponential

MOST_VOTERS = 2**31 - 1

_SLACK = 1 + 2.0**-30
"""For the roundings of the formulas, which are a few dozen operations in double precision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VotingParameters:
    """The paper's parameters, checked for the conditions of its theorems.

    `objects` are the most that a round has, `shown` the most that an answer shows; in the paper
    every round has as many, and one is shown.
    """

    objects: int
    rounds: int
    radius: int = 0
    diversity: int = 0
    shown: int = 1

    def __post_init__(self) -> None:
        if not 2 <= self.objects <= MOST_OBJECTS:
            raise InvalidArgument("objects", f"must be from 2 to {MOST_OBJECTS}")
        if not 1 <= self.shown <= self.objects:
            raise InvalidArgument("most_shown", f"must be from 1 to the objects, {self.objects}")
        if self.rounds < 1:
            raise InvalidArgument("horizon", "must be at least 1 round")
        if self.radius < 0:
            raise InvalidArgument("radius", "must not be negative")
        if self.diversity < 0:
            raise InvalidArgument("diversity", "must not be negative")
        if self.credit > MOST_CREDIT:
            raise InvalidArgument("diversity", f"2D + 2R + 1 must be at most {MOST_CREDIT}")
        least = math.ceil((2 * self.objects + 1) * (self.radius + 1) / 3)
        if self.rounds < max(least, 2 * (self.radius + 1)):
            raise InvalidArgument(
                "horizon",
                f"must be at least {max(least, 2 * (self.radius + 1))} rounds for so many objects "
                "and such a radius: in a shorter run more than half of all answers would have to "
                "be drawn at random (gamma above 1/2), and nothing could be learned",
            )
        self.rule(1)  # refuses a steepness that it cannot compute

    @property
    def credit(self) -> int:
        """The credit of a new voter, both kinds: 2D + 2R + 1."""
        return 2 * self.diversity + 2 * self.radius + 1

    @property
    def peer_credit(self) -> int:
        """The least credit of a peer at any time: D + R + 1."""
        return self.diversity + self.radius + 1

    @property
    def uniform_share(self) -> float:
        """The paper's gamma: the share of answers that are drawn uniformly at random."""
        return self.objects / (3 * self.rounds / (self.radius + 1) - 1)

    @property
    def sharpness(self) -> float:
        """The paper's lambda: how steeply the chance of an object grows with its votes."""
        return 2 * self.objects * math.log(self.rounds / (self.radius + 1))

    def rule(self, survivors: int) -> TruncatedExponential:
        """Return the draw, for rounds in which at least so many votes count."""
        return _rule(self.objects, self.rounds, self.radius, survivors)

    def published_epsilon(self, peers: int) -> float:
        """Return theorem 17's epsilon for a run, constants included (theorem 11's if D = R = 0)."""
        check_peers(peers, objects=self.objects)
        whole = 18 * self.objects**2 * math.log(self.rounds / (self.radius + 1)) / peers
        return whole if self.credit == 1 else 2 * self.credit * whole

    def loss_bound(self, *, peers: int, voters: int) -> float:
        """Return theorem 16's bound on how many recommended objects the client dislikes.

        It presumes that every voter votes in every round and that `peers` of them are peers. Where
        several objects are shown it is about the first of each answer, if the client judges it.
        """
        check_peers(peers, objects=self.objects, voters=voters)
        lives = 2 * self.radius + 1
        while_learning = lives * math.log(lives * voters / ((self.radius + 1) * peers))
        return 2 * self.objects * while_learning + self.uniform_share * self.rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParameters:
    """A run as served: votes are used while their credit, with noise, is above the threshold.

    `scale` is that of both noises of the test. `survivors` is the number of voters of whom, unless
    an event of probability `delta` happens, more than that count in every round that uses votes.
    """

    voting: VotingParameters
    peers: int
    voters: int
    delta: float
    scale: float
    survivors: int
    threshold: int
    event: ApproximateRelease = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        votes, draw = self.votes_epsilon, self.draw_epsilon
        epsilon = votes + self.test_epsilon
        # Squares sum to at most the largest times the sum.
        rho = draw * votes / 2 + self.test_epsilon**2 / 2
        event = ApproximateRelease(epsilon * _SLACK, rho * _SLACK, self.delta, "p-rec run")
        object.__setattr__(self, "event", event)

    @property
    def floor(self) -> int:
        """The credit below which votes are never used: `survivors + 1` times a full credit."""
        return (self.survivors + 1) * self.voting.credit

    @property
    def test_epsilon(self) -> float:
        """What the test costs: once for the threshold's noise, once for the round that ends it."""
        return 2 * self.voting.credit / self.scale

    @property
    def draw_epsilon(self) -> float:
        """The most that one answer, with all its objects, can reveal about a voter."""
        return replace(self.voting.rule(self.survivors).event, shown=self.voting.shown).epsilon

    @property
    def votes_epsilon(self) -> float:
        """The most that all answers of a run can reveal about a voter."""
        steep = self.draw_epsilon / math.log1p(1 / self.survivors)
        return self.draw_epsilon + steep * self.voting.credit * _integral(
            objects=self.voting.objects, least=self.survivors + 1, voters=self.voters
        )

    @property
    def loss_bound(self) -> float:
        """The paper's bound, and half a round for the chance that the test ends a run wrongly."""
        return self.voting.loss_bound(peers=self.peers, voters=self.voters) + 0.5


def check_peers(peers: int, *, objects: int, voters: int | None = None) -> None:
    """Refuse fewer peers than the theorems presume, or more than there are voters."""
    if peers < 6 * objects:
        raise InvalidArgument(
            "peers",
            f"must be at least {6 * objects}, six for each object: with fewer people who think "
            "alike, one of them could be told apart from the others",
        )
    if voters is not None and peers > voters:
        raise InvalidArgument("peers", f"must not be more than the voters, {voters}")


def tail(distance: int, scale: float) -> float:
    """Return P(X + Y >= distance) for independent discrete Laplace X and Y, distance >= 0.

    With q = exp(-1/scale), P(X + Y = k) = ((1-q)/(1+q))^2 q^|k| (|k| + (1+q^2)/(1-q^2)); summed.
    """
    q = math.exp(-1 / scale)
    rest = -math.expm1(-1 / scale)
    # Not a power of q, whose rounding would grow with the distance.
    far = math.exp(-distance / scale)
    return far / (1 + q) ** 2 * (rest * distance + (1 + q * q) / (1 + q) + q) * _SLACK


def margin(probability: float, scale: float) -> int:
    """Return the least distance that two noises together reach with at most that probability."""
    low, high = 0, 1
    while tail(high, scale) > probability:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if tail(middle, scale) > probability else (low, middle)
    return high


def parameters_at(
    *, voting: VotingParameters, peers: int, voters: int, delta: float, scale: float
) -> RunParameters:
    """Return a run with a given test; refuse if it leaves no room for votes to be used."""
    check_peers(peers, objects=voting.objects, voters=voters)
    if voters > MOST_VOTERS:
        raise InvalidArgument("voters", f"must be at most {MOST_VOTERS}")
    if not 0 < delta <= 0.01:
        raise InvalidArgument("run_delta", "must be above 0 and at most 0.01")
    promised = peers * voting.peer_credit
    # A run of T rounds ends wrongly with probability at most T / (2 T^2): half a round lost.
    spare = margin(0.5 / voting.rounds**2, scale) - 1
    safe = margin(delta, scale) + voting.credit - 1
    survivors = (promised - spare - safe) // voting.credit - 1
    if survivors < 1:
        raise InvalidArgument(
            "peers", "must be more: the test that protects the voters would end every run"
        )
    return RunParameters(
        voting=voting,
        peers=peers,
        voters=voters,
        delta=delta,
        scale=scale,
        survivors=survivors,
        threshold=(survivors + 1) * voting.credit + safe,
    )


@lru_cache(maxsize=1024)
def parameters_for(
    *, voting: VotingParameters, peers: int, voters: int, delta: float
) -> RunParameters:
    """Return the run with the smallest epsilon: a finer test costs more, a coarser one voters."""
    promised = peers * voting.peer_credit
    best: RunParameters | None = None
    refusal: InvalidArgument | None = None
    for step in range(80):
        # From a test that costs 8 up to one whose noise is as wide as all peers' credit.
        scale = voting.credit / 4 * (4 * promised / voting.credit) ** (step / 80)
        try:
            found = parameters_at(
                voting=voting, peers=peers, voters=voters, delta=delta, scale=scale
            )
        except InvalidArgument as error:
            refusal = refusal or error
            continue
        if best is None or found.event.epsilon < best.event.epsilon:
            best = found
    if best is None:
        assert refusal is not None
        raise refusal
    return best


def parameters_within(
    *, voting: VotingParameters, epsilon: float, voters: int, delta: float
) -> RunParameters:
    """Return the run of the fewest peers that costs at most `epsilon`."""
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InvalidArgument("epsilon", "must be finite and greater than 0")

    def enough(peers: int) -> RunParameters | None:
        try:
            cheapest = parameters_for(voting=voting, peers=peers, voters=voters, delta=delta)
        except InvalidArgument as error:
            if error.argument != "peers":
                raise
            return None
        return cheapest if cheapest.event.epsilon <= epsilon else None

    found = enough(voters)
    if found is None:
        raise InvalidArgument(
            "epsilon",
            f"cannot be had with {voters} voters: allow more, or more voters, or fewer objects, "
            "a smaller radius or diversity",
        )
    low, high = 6 * voting.objects - 1, voters
    while high - low > 1:
        middle = (low + high) // 2
        cheaper = enough(middle)
        if cheaper is None:
            low = middle
        else:
            high, found = middle, cheaper
    return found


@lru_cache(maxsize=1024)
def _rule(objects: int, rounds: int, radius: int, survivors: int) -> TruncatedExponential:
    return TruncatedExponential.published(
        objects=objects, rounds=rounds, mistakes=radius, survivors=survivors
    )


def _integral(*, objects: int, least: int, voters: int) -> float:
    """Return the proof's integral over c, from `least` to `voters`, of the dearer of two ways.

    Up to c* = (2m-1)(w-1) a leak costs most when everybody votes, beyond when w do.
    """
    if voters <= least:
        return 0.0
    m, w = objects, least
    turn = (2 * m - 1) * (w - 1)
    upper = min(turn, voters)
    everybody = 2 * m * (math.log1p(1 / (w - 1)) - math.log1p(1 / (upper - 1)))
    if voters <= turn:
        return everybody
    few = math.log((voters - w + w / (2 * m)) / (turn - w + w / (2 * m))) / (w - 1)
    return everybody + few
