"""Open Bandit Pipeline's own estimators (Saito et al. 2021), to check ours against."""

import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def estimators(folder: Path, patch: pytest.MonkeyPatch) -> Any:
    """Return its module of estimators, from where it is installed.

    Its package imports torch, for policies that are not used here. So only the module that is
    wanted is imported, and where there is no torch an empty module of that name, which estimators
    of numpy arrays do not touch.
    """
    for name in ("obp", "obp.ope"):
        package = ModuleType(name)
        package.__path__ = [str(folder.joinpath(*name.split(".")))]
        patch.setitem(sys.modules, name, package)
    if find_spec("torch") is None:
        torch = ModuleType("torch")
        torch.tensor = torch.Tensor = object  # type: ignore[attr-defined]  # named in annotations
        patch.setitem(sys.modules, "torch", torch)
    for name in ("obp.utils", "obp.ope.helper", "obp.ope.estimators"):
        patch.delitem(sys.modules, name, raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module("obp.ope.estimators")
