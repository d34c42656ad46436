"""The load tests are scripts beside each other, not a package: they find each other by folder."""

import sys

from tests.house import ROOT

sys.path.append(str(ROOT / "loadtests"))
