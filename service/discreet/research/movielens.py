"""TEMPORARY path for helpers' scripts; deleted at the end of the move."""

from discreet.research.worlds.movielens import *  # noqa
