"""Which ledgers a recommender debits: its own, or those of a group. Fixed for good with its name.

Ledgers follow the recommender's name, or the name of its group. A recommender that was removed and
created anew in another group would find everybody with a fresh budget, so the group of a name is
written once and never changed, not even by removing the recommender.
"""

from discreet.errors import InvalidArgument
from discreet.state.stores import Configurations

LEDGER = "ledger/"
"""Begins the name under which the store keeps the group of a recommender's name."""
_OWN = b"\0"
"""Stands for no group: names are printable."""


async def fix_ledger(store: Configurations, recommender: str, group: str | None) -> None:
    """Fix the group of a recommender's name. Raises `InvalidArgument` if it has another one."""
    proposal = _OWN if group is None else group.encode()
    fixed = await store.secret(name=LEDGER + recommender, proposal=proposal)
    if fixed == proposal:
        return
    had = "left out" if fixed == _OWN else fixed.decode()
    raise InvalidArgument(
        "ledger",
        f"must be {had}, as it was when a recommender of this name was first created: another "
        "ledger would give everybody a fresh budget. Use another name for another ledger",
    )
