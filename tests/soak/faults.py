"""What is done to the way to the server, and to the server, while everybody works."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from stubs.proxy import Proxy, Rule
from stubs.server import StubServer

FAILING: Final = (
    r"/prompt$", r"/reply$", r"/inbox$", r"/active$", r"/message$", r"/interrupt$", r"/session$",
)  # fmt: skip


async def disturb(proxy: Proxy, stub: StubServer, over: asyncio.Event, seed: int) -> None:
    """One fault after the other until `over` is set; at the end everything is whole again."""
    dice = random.Random(seed)
    while not over.is_set():
        await asyncio.sleep(dice.uniform(1.0, 4.0))
        match dice.choices(("cut", "fail", "lose", "away", "kill"), (10, 4, 4, 2, 1))[0]:
            case "cut":
                proxy.cut_feed(clean=dice.random() < 0.5)
            case "fail":
                times = dice.randint(1, 5)
                proxy.add(Rule(dice.choice(FAILING), times=times, status=503))
            case "lose":
                proxy.add(Rule(dice.choice(FAILING), "POST", times=2, swallow=True))
            case "away":
                await proxy.refuse()
                await asyncio.sleep(dice.uniform(0.1, 1.0))
                await proxy.accept()
            case _:
                await stub.restart("lost", down=0.2)
        proxy.rules[:] = [rule for rule in proxy.rules if rule.used < (rule.times or 1)]
    proxy.rules.clear()
