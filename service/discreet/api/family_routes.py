"""The routes that one family alone needs: votes, profiles, what nodes say to each other."""

from collections.abc import Sequence

from fastapi import APIRouter

from discreet.api import collaborative, fclub, mirror_descent, voters

FAMILY_ROUTERS: Sequence[APIRouter] = (
    collaborative.router,
    fclub.router,
    mirror_descent.router,
    voters.router,
)
