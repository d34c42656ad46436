"""Nobody has to listen: the null observer takes everything that decisions report."""

import inspect

from discreet.families.observer import NullObserver, Observer


def test_the_null_observer_has_every_method_with_the_same_arguments() -> None:
    for name, method in inspect.getmembers(Observer, inspect.isfunction):
        if not name.startswith("_"):
            assert inspect.signature(method) == inspect.signature(getattr(NullObserver, name))
