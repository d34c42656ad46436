"""A worker of its own: spends one nano-epsilon at a time, as often as it is let.

`python -m tests.state.spender URL NAMESPACE BUDGET ATTEMPTS` prints how many debits were granted.
"""

import asyncio
import sys

from discreet.privacy.charges import NEVER, Charge, Limit
from discreet.state.redis_store import open_store
from discreet.state.stores import Debit, Debited


async def main(url: str, namespace: str, budget: str, attempts: str) -> None:
    store = open_store(url, namespace=namespace, timeout=30)
    await store.open()
    debit = Debit(b"shared", Charge(nano_epsilon=1), Limit(int(budget), NEVER))
    granted = 0
    for _ in range(int(attempts) // 10):
        found = await store.spend([debit] * 10)
        granted += sum(isinstance(each, Debited) and each.granted for each in found)
        await asyncio.sleep(0)  # lets the other processes compete
    await store.close()
    print(granted)


asyncio.run(main(*sys.argv[1:]))
