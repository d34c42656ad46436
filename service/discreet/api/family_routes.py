"""The routes that some families alone need: votes, profiles, maps, what nodes say to each other."""

from collections.abc import Sequence

from fastapi import APIRouter

from discreet.api import collaborative, fclub, maps, mirror_descent, voters

FAMILY_ROUTERS: Sequence[APIRouter] = (
    collaborative.router,
    fclub.router,
    maps.router,
    mirror_descent.router,
    voters.router,
)
