"""What the agent answers to every method of ACP, as the table says."""

from __future__ import annotations

from contract.errors import Code
from contract.surface import AGENT_METHODS
from stubs.client import AcpClientError
from tests.scenarios.stage import Stage
from tests.support.schema import methods

REQUESTS = [name for name, method in methods("agent", stable=False).items() if method.result]


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
