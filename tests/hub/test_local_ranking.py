"""What is popular, in the order of one's own taste, without a byte that leaves."""

from discreet.families.collaborative.on_device.catalogue import Level
from discreet.hub.catalogue import PublicCatalogue
from discreet.hub.choices import Choices
from discreet.hub.hub import SHOWN_PER_ROW, Hub
from discreet.hub.local_ranking import rank
from tests.hub.recommending import Recommending

PLACES = {f"f{n}": float(n) for n in range(24)}


def test_without_a_history_it_is_what_is_popular(public: PublicCatalogue) -> None:
    assert rank(public, PLACES, [], count=5) == ["f0", "f1", "f2", "f3", "f4"]
    assert rank(public, {}, ["f1"], count=5) == [], "nothing is known of what is popular"


def test_what_goes_with_the_history_comes_first_and_what_was_seen_is_gone(
    public: PublicCatalogue,
) -> None:
    seen = ["f2", "f8", "f14"]  # crime, and nothing else
    found = rank(public, PLACES, seen, count=4)
    assert not set(seen) & set(found)
    assert "Crime" in public.by_id[found[0]].categories
    # An unknown item of the history, or of what is popular, changes nothing.
    assert rank(public, {**PLACES, "gone": 0.0}, [*seen, "nobody's"], count=4) == found


def test_the_row_is_made_here_and_the_requests_do_not_know(hub: Hub, served: Recommending) -> None:
    served.popular = [f"f{n}" for n in (5, 11, 2, 8, 14, 0, 1)]
    hub.fetch_catalogue()
    hub.choose(Choices(overall=Level.NO))
    served.asked.clear()
    assert not any(row.local for row in hub.recommend())
    nothing = [body for _, _, _, body in served.asked]
    hub.see("f8")
    served.asked.clear()
    first = hub.recommend()[0]
    assert first.local
    assert first.personalised
    assert len(first.items) <= SHOWN_PER_ROW
    # The third of what is popular, and the first that is in Crime alone.
    assert first.items[0].id == "f2"
    assert [body for _, _, _, body in served.asked] == nothing
