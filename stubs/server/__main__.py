"""`python -m stubs.server --port 0`: serve until SIGTERM; the first line tells the address."""

from __future__ import annotations

import argparse
import asyncio
import signal

from stubs.server import Settings, StubServer


def main() -> None:
    """Read the flags and serve."""
    defaults = Settings()
    parser = argparse.ArgumentParser(prog="python -m stubs.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--password", help="without it, no credentials are asked for")
    parser.add_argument("--project", default=".", help="the directory of requests without one")
    parser.add_argument("--boot", type=float, default=defaults.boot, metavar="SECONDS")
    parser.add_argument("--retry-base", type=float, default=defaults.retry_base, metavar="SECONDS")
    parser.add_argument("--heartbeat", type=float, default=defaults.heartbeat, metavar="SECONDS")
    parser.add_argument(
        "--delta-interval", type=float, default=defaults.delta_interval, metavar="SECONDS"
    )
    flags = parser.parse_args()
    settings = Settings(
        password=flags.password,
        project=flags.project,
        boot=flags.boot,
        retry_base=flags.retry_base,
        heartbeat=flags.heartbeat,
        delta_interval=flags.delta_interval,
    )
    asyncio.run(_serve(settings, flags.port))


async def _serve(settings: Settings, port: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with StubServer(settings, port) as stub:
        print(f"listening on {stub.url}", flush=True)
        await stop.wait()


if __name__ == "__main__":
    main()
