"""What the agent answers to every method of ACP and what it sends, as the tables say."""

from __future__ import annotations

from typing import Final

from contract.errors import Code
from contract.surface import AGENT_METHODS, UPDATES, used
from stubs.client import AcpClientError
from tests.scenarios.stage import Json, Stage, shell
from tests.support.checked import CheckedClient
from tests.support.schema import methods

REQUESTS: Final = tuple(
    name for name, method in methods("agent", stable=False).items() if method.result
)
TAKES: Final[dict[str, Json]] = {"notices": {}, "compaction": {}}
SERVER: Final = {"name": "mine", "command": "true", "args": [], "env": []}


def kinds(agent: CheckedClient) -> set[str]:
    """The kinds of all updates that came."""
    messages = [line.message for line in agent.updates]
    updates = [one["params"]["update"] for one in messages if one.get("method") == "session/update"]
    return {update["sessionUpdate"] for update in updates}


async def test_a_method_is_served_as_listed(stage: Stage) -> None:
    agent = await stage.agent()
    listed = {entry.name: entry.used for entry in AGENT_METHODS}
    served = {}
    for method in REQUESTS:
        try:
            await agent.request(method, {})
        except AcpClientError as error:
            served[method] = error.code != Code.METHOD_UNKNOWN
        else:
            served[method] = True
    assert served == {method: listed[method] for method in REQUESTS}


async def test_every_update_that_is_listed_is_sent(stage: Stage) -> None:
    agent = await stage.agent(capabilities={"session": TAKES})
    project = stage.project()
    session = await agent.new_session(project, mcpServers=[SERVER])
    await agent.prompt(session, f"@@think 1 && text 2 && {shell('true')} || text 1@@ %%wait 1%%")
    await agent.prompt(session, "/compact")
    front = await stage.front_end()
    await front.post(f"session/{session}/agent", {"agent": "plan"})
    # What is chosen while a session is loaded comes with the answer of the load.
    await agent.wait_for(lambda: "current_mode_update" in kinds(agent))
    await agent.load(session, project)
    await agent.wait_for(lambda: kinds(agent) >= used(UPDATES))
    assert kinds(agent) == used(UPDATES)
