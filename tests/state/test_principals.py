"""Names that the store may keep: keyed digests that cannot be confused."""

from discreet.state.principals import DIGEST_BYTES, Principals

PEPPER = bytes(range(32))


def test_a_digest_depends_on_the_pepper_and_on_both_names() -> None:
    one = Principals(PEPPER)
    digests = {
        one.client("films", "ada"),
        one.client("films", "bob"),
        one.client("books", "ada"),
        Principals(bytes(32)).client("films", "ada"),
        one.event("ada"),
        one.holder("ada"),
        one.code("ada"),
        one.request([b"films", b"ada"]),
    }
    assert len(digests) == 8
    assert {len(each) for each in digests} == {DIGEST_BYTES}
    assert one.client("films", "ada") == Principals(PEPPER).client("films", "ada")


def test_parts_of_a_request_cannot_be_split_in_two_ways() -> None:
    one = Principals(PEPPER)
    assert one.request([b"ab", b"c"]) != one.request([b"a", b"bc"])


def test_a_recommenders_clients_are_named_alike_one_by_one_and_together() -> None:
    principals = Principals(b"pepper")
    for group in (None, "shop"):
        name = principals.clients("films", group=group)
        for client in ("ada", "", "Zoë", "a\0b"):
            assert name(client) == principals.client("films", client, group=group)


def test_marks_of_many_events_are_those_of_each_and_no_other_name() -> None:
    names = Principals(b"p" * 32)
    events = ["one", "two", "a longer one, with ümlauts"]
    marks = names.marks(events, b"8 bytes.")
    assert marks == [names.marks([each], b"8 bytes.")[0] for each in events]
    others = [*names.marks(events, b"8 more.."), *map(names.event, events)]
    others += Principals(b"q" * 32).marks(events, b"8 bytes.")
    assert len({*marks, *others}) == 4 * len(events)
