"""A recommender by voters' weights as the workers hold it: its terms, and where things are kept."""

import hashlib

from discreet.families.p_rec.run_parameters import Terms as RunTerms
from discreet.families.p_rec.run_parameters import Voting, terms_for
from discreet.families.questions import Ask, refuse_unused
from discreet.decisions.recommender import Recommender, Stored
from discreet.families.budgets import Terms
from discreet.families.p_rec.document import VotersDocument
from discreet.errors import InvalidArgument
from discreet.privacy.accountants import Budget
from discreet.privacy.charges import Charge

PARTS = 64
_POPULATION = "\0population"
_VOTER = "\0voter/"
"""No client's id begins like these: ids are printable."""


class VotersRecommender(Recommender):
    """The terms of a run, priced once, and the names of everything in the store."""

    def __init__(self, *, name: str, stored: Stored) -> None:
        document = stored.document
        assert isinstance(document, VotersDocument)
        privacy = document.privacy
        self.run = terms_for(
            voting=Voting(
                objects=document.objects,
                rounds=document.horizon,
                radius=document.radius,
                diversity=document.diversity,
            ),
            peers=document.peers,
            voters=document.voters,
            delta=privacy.run_delta,
        )
        terms = Terms(
            accounting=privacy.accounting,
            budget=Budget(epsilon=privacy.budget.epsilon, delta=privacy.budget.delta),
            # Half of delta for runs that fail, half for the conversion from rho.
            reserved_delta=privacy.budget.delta / 2 if privacy.accounting == "zcdp" else 0.0,
        )
        super().__init__(name=name, stored=stored, terms=terms)
        self.document = document
        self.charge: Charge = terms.charge((self.run.event,))
        if not terms.limit.admits(self.charge):
            raise InvalidArgument(
                "privacy.budget",
                f"pays for no run at all: one costs epsilon {self.run.event.epsilon:.4g}. More "
                "peers make runs cheaper; `discreet voters` helps to choose",
            )
        self.refuses = privacy.on_exhausted == "refuse"
        self.closes_by_answering = document.voting_ends == "first_answer"

    @property
    def population_terms(self) -> Terms:
        """The budget of the voters."""
        assert self.terms is not None
        return self.terms

    @property
    def run_terms(self) -> RunTerms:
        """What a run promises."""
        return self.run

    @property
    def population(self) -> str:
        """Who pays, where a client's id would stand."""
        return _POPULATION

    def require(self, ask: Ask) -> None:
        """Raise for a question that cannot be asked of voters."""
        refuse_unused(ask, uses=("round",))
        if ask.limit != 1:
            raise InvalidArgument("limit", "must be 1: a round has one answer")
        if ask.exclude:
            raise InvalidArgument("exclude", "is not used by this recommender; leave it out")
        if ask.candidates is not None:
            raise InvalidArgument("candidates", "is not used by this recommender; leave it out")

    # Names in the store.

    def key(self, what: bytes) -> bytes:
        """Return the name of something that is kept for this recommender, and lost with it."""
        return self.generation + b"/" + what

    @property
    def rounds_roster(self) -> bytes:
        """Who numbers the rounds."""
        return self.key(b"rounds")

    @property
    def voters_roster(self) -> bytes:
        """Who numbers the voters."""
        return self.key(b"voters")

    @property
    def retired_roster(self) -> bytes:
        """Voters who were erased."""
        return self.key(b"retired")

    @property
    def erasures(self) -> bytes:
        """The blob whose version counts how often votes were taken back after voting had ended."""
        return self.key(b"erasures")

    def round_name(self, round_id: str) -> bytes:
        """Return how the roster calls a round."""
        return hashlib.blake2b(round_id.encode(), digest_size=16).digest()

    def definition(self, number: int) -> bytes:
        """Return where a round's objects are kept."""
        return self.key(b"round/" + number.to_bytes(4, "little"))

    def ballots(self, number: int) -> bytes:
        """Return the page of a round's votes."""
        return self.key(b"votes/" + number.to_bytes(4, "little"))

    def history(self, who: bytes) -> bytes:
        """Return the page of a client's history."""
        return self.key(b"client/" + who)

    def clients_part(self, part: int) -> bytes:
        """Return one part of the list of clients that have a history."""
        return self.key(b"clients/" + bytes([part % PARTS]))

    def voter(self, voter_id: str) -> str:
        """Return what a voter is called where clients are called by their ids."""
        return _VOTER + voter_id
