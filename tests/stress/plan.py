"""One random schedule: what two clients, a foreign front end and the feeds do, and when."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field

# Seconds in which a schedule's own acts take place; turns may last longer.
SPAN = 4.0
# Ends of the paths that may fail for a while.
FAILING = (
    r"/reply$",
    r"/inbox$",
    r"/active$",
    r"/message$",
    r"/request$",
    r"/form$",
    r"/interrupt$",
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt with its script; `steps` are the texts that the model gives, step by step."""

    tag: str
    text: str
    steps: tuple[str, ...]
    thoughts: tuple[str, ...]
    cancel_after: float | None = None


@dataclass(frozen=True, slots=True)
class Act:
    """Something that happens at `at` seconds: a cut, a refusal, a foreign prompt or interrupt."""

    at: float
    kind: str
    client: int = 0
    clean: bool = False
    seconds: float = 0.0
    prompt: Prompt | None = None
    delivery: str = "queue"
    path: str = ""
    times: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """`prompts[i]` are the turns of client i, one after the other, each after a pause."""

    seed: int
    prompts: tuple[tuple[tuple[float, Prompt], ...], ...]
    acts: tuple[Act, ...]
    asks: dict[str, tuple[float, str]] = field(default_factory=dict)

    def has(self, *kinds: str) -> bool:
        return any(act.kind in kinds for act in self.acts)


def plan(seed: int, *, restarts: bool = False) -> Plan:
    """The schedule of a seed; equal seeds give equal schedules."""
    dice = random.Random(seed)
    prompts = tuple(
        tuple(
            (dice.uniform(0, 1.2), _prompt(dice, f"s{seed}c{client}n{number}", cancel=True))
            for number in range(dice.randint(1, 3))
        )
        for client in range(2)
    )
    acts: list[Act] = []
    for client in range(2):
        for _ in range(dice.choice((0, 1, 1, 2, 3))):
            kind = dice.choice(("cut", "cut", "cut", "refuse"))
            acts.append(
                Act(
                    dice.uniform(0, SPAN),
                    kind,
                    client,
                    dice.random() < 0.5,
                    dice.uniform(0.05, 0.8),
                )
            )
        if dice.random() < 0.15:
            acts.append(Act(dice.uniform(0, SPAN), "swallow", client))
        if dice.random() < 0.3:
            acts.append(_failing(dice, client))
    for number in range(dice.choice((0, 0, 1, 2))):
        acts.append(
            Act(
                dice.uniform(0, SPAN),
                "prompt",
                prompt=_prompt(dice, f"s{seed}f{number}", cancel=False),
                delivery=dice.choice(("queue", "steer")),
            )
        )
    if dice.random() < 0.12:
        acts.append(Act(dice.uniform(0, SPAN), "interrupt"))
    if restarts:
        acts.append(Act(dice.uniform(0.2, SPAN), "restart", clean=dice.random() < 0.5))
    return Plan(seed, prompts, tuple(sorted(acts, key=lambda act: act.at)))


def _failing(dice: random.Random, client: int) -> Act:
    """Requests of one kind that are answered 503, or whose answers are lost, a few times."""
    path = dice.choice(FAILING)
    kind = dice.choice(("status", "swallow_any"))
    return Act(dice.uniform(0, SPAN), kind, client, path=path, times=dice.randint(1, 6))


def _prompt(dice: random.Random, tag: str, *, cancel: bool) -> Prompt:
    count = dice.choice((1, 1, 2, 3))
    steps: list[str] = []
    thoughts: list[str] = []
    script: list[str] = []
    for number in range(count):
        actions: list[str] = []
        if dice.random() < 0.3:
            words = dice.randint(1, 8)
            actions.append(f"think {words} {dice.choice((0, 20))}")
            thoughts.append("".join(f"think{i} " for i in range(words)))
        text = f"<{tag}.{number} " + "".join(f"w{i}é " for i in range(dice.randint(1, 40))) + ">"
        steps.append(text)
        actions.append(f"say {json.dumps(text)} {dice.choice((0, 5, 15, 30))}")
        if number < count - 1:
            command = dice.choice(("echo one", "sleep 0.2; echo two", "echo three; sleep 0.1"))
            call = f"tool shell {json.dumps({'command': command})}"
            actions.append(call)
            if dice.random() < 0.25:
                actions.append(call)
        script.append(" && ".join(actions))
    after = dice.uniform(0, 2.0) if cancel and dice.random() < 0.25 else None
    return Prompt(tag, f"{tag} @@{' || '.join(script)}@@", tuple(steps), tuple(thoughts), after)
