"""Questions to the user, and what a scenario sees of them."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from stubs.client.client import FormPolicy, Policy
from stubs.waiting import until
from tests.scenarios.stage import FrontEnd, Json, Stage
from tests.support.checked import CheckedClient

FORMS: Final[Json] = {"elicitation": {"form": {}}}
COLOR: Final = {
    "question": "Which color?",
    "header": "Color",
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "b"}],
}


def ask(*questions: Json) -> str:
    """The action of the question tool."""
    return "tool question " + json.dumps({"questions": questions})


def accept(**content: Any) -> FormPolicy:
    """A user who fills in that, whatever is asked."""

    async def policy(_: Json) -> Json:
        return {"action": "accept", "content": content}

    return policy


async def no_answer(_: Json) -> Json:
    """A user who does not answer."""
    await asyncio.Event().wait()
    return {}


async def shows_forms(
    stage: Stage, fills_in: FormPolicy, policy: Policy | None = None, **more: Any
) -> CheckedClient:
    """A client that shows forms."""
    agent = await stage.agent(policy, capabilities=FORMS, **more)
    agent.form_policy = fills_in
    return agent


async def saw_form(agent: CheckedClient, count: int = 1) -> Json:
    """Wait until so many forms were shown; the params of the newest."""

    def shown() -> list[Json]:
        return [
            line.message["params"]
            for line in agent.updates
            if line.message.get("method") == "elicitation/create"
        ]

    await agent.wait_for(lambda: len(shown()) >= count)
    return shown()[-1]


def told(agent: CheckedClient, session: str) -> str:
    """What the only tool told the model."""
    (tool,) = agent.transcript(session).tools.values()
    return str(tool["rawOutput"]["output"])


def fates(agent: CheckedClient, session: str) -> list[str]:
    return [form["answer"] for form in agent.transcript(session).forms]


async def open_form(front: FrontEnd, session: str) -> Json:
    """The form that waits."""

    async def there() -> Json | None:
        forms: list[Json] = await front.get(f"session/{session}/form")
        return forms[0] if forms else None

    return await until("a form waits", there)
