"""`discreet`, with one family more: python -m tests.sixth_family.server serve …"""

import sys

from discreet.cli import main
from discreet.families.registration import register
from tests.sixth_family.recommender import OverallRecommender

register(OverallRecommender)

if __name__ == "__main__":
    sys.exit(main())
