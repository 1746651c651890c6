"""The client of the Python SDK, with everything held against ACP that comes to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import acp
from acp import schema
from acp.client.connection import ClientSideConnection
from acp.connection import StreamDirection, StreamEvent

from stubs.waiting import until
from tests.scenarios.backends import Backend
from tests.scenarios.stage import agent_argv, agent_env
from tests.support.daemons import launched
from tests.support.oracle import Oracle

CAPABILITIES: Final = schema.ClientCapabilities(
    elicitation=schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities())
)


class Host:
    """What a program gives to the SDK: it keeps the updates and answers the asks.

    Any other request of the agent is refused by the SDK, which logs that.
    """

    def __init__(self, answer: schema.PermissionOptionKind = "allow_once") -> None:
        self.updates: list[Any] = []
        self.asks: list[schema.ToolCallUpdate] = []
        self.forms: list[schema.ElicitationFormSessionMode] = []
        self.answer = answer

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self,
        session_id: str,
        tool_call: schema.ToolCallUpdate,
        options: list[schema.PermissionOption],
        **_: Any,
    ) -> schema.RequestPermissionResponse:
        self.asks.append(tool_call)
        (option,) = [option for option in options if option.kind == self.answer]
        chosen = schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
        return schema.RequestPermissionResponse(outcome=chosen)

    async def create_elicitation(
        self, message: str, mode: schema.ElicitationFormSessionMode, **_: Any
    ) -> schema.CreateElicitationResponse:
        """Takes the first choice of each property that has choices."""
        self.forms.append(mode)
        fields = (mode.requested_schema.properties or {}).items()
        choices = {key: getattr(field, "one_of", None) for key, field in fields}
        content = {key: options[0].const for key, options in choices.items() if options}
        return schema.AcceptElicitationResponse(action="accept", content=content)

    def of(self, kind: str) -> list[Any]:
        """The updates of that kind."""
        return [update for update in self.updates if update.session_update == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        """The text of all chunks of that kind."""
        return "".join(update.content.text for update in self.of(kind))

    async def saw_text(self, words: str) -> None:
        """Wait until these words have come."""

        async def there() -> bool:
            return words in self.text()

        await until(f"the words {words!r}", there)

    async def saw(self, kind: str) -> None:
        """Wait until an update of that kind has come."""

        async def there() -> bool:
            return bool(self.of(kind))

        await until(f"a {kind}", there)


Connected = tuple[ClientSideConnection, Host]


@asynccontextmanager
async def connected(backend: Backend, host: Host | None = None) -> AsyncIterator[Connected]:
    """An adapter process that was initialized.

    At the end it must have ended by itself with nothing on stderr, and every line that it wrote
    must be ACP.
    """
    host = host or Host()
    oracle = Oracle()

    def observe(event: StreamEvent) -> None:
        if event.direction == StreamDirection.INCOMING:
            oracle.received(event.message)
        else:
            oracle.sent(event.message)

    env = agent_env(backend.password)
    async with (
        launched(agent_argv(backend.url), env) as ((command, *arguments), _),
        acp.spawn_agent_process(
            cast(acp.Client, host),
            command,
            *arguments,
            env=env,
            observers=[observe],
            # The SDK counts forms as unstable.
            use_unstable_protocol=True,
        ) as (connection, process),
    ):
        answer = await connection.initialize(acp.PROTOCOL_VERSION, CAPABILITIES)
        assert answer.protocol_version == acp.PROTOCOL_VERSION
        yield connection, host
    assert process.stderr is not None
    assert (process.returncode, await process.stderr.read()) == (0, b"")
    assert oracle.faults == []
