"""A worker of its own: spends one nano-epsilon at a time, as often as it is let.

`python -m tests.state.spender URL NAMESPACE BUDGET ATTEMPTS` prints how many debits were granted.
"""

import asyncio
import sys

from discreet.privacy.charges import Charge, Limit
from discreet.state.redis_store import open_store


async def main(url: str, namespace: str, budget: str, attempts: str) -> None:
    store = open_store(url, namespace=namespace, timeout=30)
    await store.open()
    limit = Limit(nano_epsilon=int(budget))
    granted = 0
    left = int(attempts)
    while left:
        debits = [
            store.spend(principal=b"shared", charge=Charge(nano_epsilon=1), limit=limit)
            for _ in range(min(left, 10))
        ]
        left -= len(debits)
        granted += sum([(await debit).granted for debit in debits])
        await asyncio.sleep(0.001)  # lets the other processes compete
    await store.close()
    print(granted)


asyncio.run(main(*sys.argv[1:]))
