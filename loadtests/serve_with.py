"""`discreet serve` over another client of the store: python loadtests/serve_with.py CLIENT serve …

CLIENT is redis-py or coredis. Everything else is what `discreet serve` starts, so that what differs
between the two is the client alone.
"""

import os
import sys
import tempfile


def main() -> int:
    """Replace the client, then run the command."""
    client, *arguments = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        # prometheus_client decides at import whether workers share their counters.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        from functools import partial

        from store_clients import CLIENTS

        from discreet import cli, serving
        from discreet.app import create_app
        from discreet.settings import Settings
        from discreet.state.keys import StoreKeys
        from discreet.state.redis_store import RedisStore

        def opening(settings: Settings) -> RedisStore:
            assert settings.store is not None
            return RedisStore(CLIENTS[client](settings.store), StoreKeys(settings.namespace))

        setattr(serving, "create_app", partial(create_app, opening=opening))  # noqa: B010
        return cli.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
