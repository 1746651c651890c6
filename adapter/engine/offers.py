"""What can be chosen in one session, what is chosen, and what each attachment was told of it.

A client must learn of a choice that another front end made, and of a catalogue that changed: it
is told when, and only when, what it would see differs from what it was told last.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from adapter.acp import updates
from adapter.engine.choices import Choices
from adapter.engine.client import Attachment, Client
from adapter.engine.services import Services
from adapter.upstream.errors import UpstreamError
from contract.events import AgentSelected, Event, ModelSelected, SessionRenamed
from contract.reads import Session
from contract.shapes import ModelRef

logger = logging.getLogger(__name__)

Json = dict[str, object]

# Of one refreshing; a session is not changed so often within the time of a reading.
READINGS: Final = 5


@dataclass(frozen=True, slots=True)
class Told:
    """What one attachment knows; `commands` is None before they were announced."""

    options: list[Json]
    mode: str | None
    commands: list[Json] | None = None


class Offers:
    """One session's. `attachments` are those of the hub, by owner."""

    def __init__(
        self,
        services: Services,
        session: Session,
        directory: str,
        attachments: Mapping[int, Attachment],
    ) -> None:
        self.agent = session.agent
        self.model: ModelRef | None = session.model
        self.title = session.title
        # Choices are read, set and told by one task at a time.
        self.lock = asyncio.Lock()
        self._services = services
        self._session_id = session.id
        self._directory = directory
        self._attachments = attachments
        self._told: dict[int, Told] = {}
        self._heard = 0
        self._due = False
        self._settle = 0.0
        self._teller: asyncio.Task[None] | None = None

    @property
    def tasks(self) -> set[asyncio.Task[None]]:
        return {self._teller} if self._teller is not None else set()

    async def read(self) -> Choices:
        """The choices as they stand. Raises `UpstreamError`."""
        catalogue = await self._services.catalogues.get(self._directory)
        return Choices(catalogue, self.agent, self.model)

    # --- what an attachment is told -------------------------------------------------------

    def told(self, owner: int, choices: Choices) -> Json:
        """The choices as the answer of an opening: `configOptions` and `modes`."""
        options, modes = choices.options(), choices.modes()
        self._told[owner] = Told(options, choices.current_mode)
        result: Json = {"configOptions": options}
        if modes is not None:
            result["modes"] = modes
        return result

    def told_options(self, owner: int, choices: Choices) -> list[Json]:
        """The whole list, as the answer of a set."""
        options = choices.options()
        known = self._told.get(owner)
        if known is not None:
            self._told[owner] = replace(known, options=options)
        self.changed()
        return options

    def told_mode(self, owner: int, mode: str) -> None:
        """A set of the mode is answered with nothing: its client knows the mode, not the list."""
        known = self._told.get(owner)
        if known is not None:
            self._told[owner] = replace(known, mode=mode)
        self.changed()

    def announce(self, owner: int) -> None:
        """Tell a new attachment the commands; whatever changed since its answer goes with them."""
        if owner in self._told:
            self.changed()

    def forget(self, owner: int) -> None:
        self._told.pop(owner, None)

    def told_of(self, owner: int) -> Told | None:
        """What the attachment knows, for one that comes back (`recall`)."""
        return self._told.get(owner)

    def recall(self, owner: int, told: Told | None, title: str) -> None:
        """An attachment comes back that knows this: it is told what changed meanwhile."""
        if told is not None:
            self._told[owner] = told
        if title != self.title:
            self._entitle(self._attachments[owner].client)

    # --- what happens ---------------------------------------------------------------------

    def hear(self, event: Event) -> None:
        """A choice or a title, by whichever front end."""
        match event:
            case AgentSelected():
                self.chose_agent(event.agent)
            case ModelSelected():
                self.chose_model(event.model)
            case SessionRenamed():
                self._renamed(event.title)
            case _:
                return
        self.changed()

    def chose_agent(self, agent: str) -> None:
        """The session's agent, by an event or by a set that was accepted."""
        self.agent = agent
        self._heard += 1

    def chose_model(self, model: ModelRef) -> None:
        self.model = model
        self._heard += 1

    def changed(self, *, settle: float = 0.0) -> None:
        """See to it that every attachment is told; a burst of changes is waited for `settle`."""
        self._due = True
        self._settle = max(self._settle, settle)
        if self._teller is None:
            self._teller = asyncio.create_task(self._tell(), name=f"offers {self._session_id}")
            self._teller.add_done_callback(self._ended)

    async def refresh(self) -> None:
        """Read what may have changed unheard (rule 18); what is heard meanwhile is newer.

        A reading that something was heard in is repeated: it may have been made before that.
        """
        for _ in range(READINGS):
            heard = self._heard
            try:
                session = await self._services.server.session(self._session_id)
            except UpstreamError as error:
                logger.info("the choices of %s could not be read: %s", self._session_id, error)
                return
            if heard == self._heard:
                self.agent, self.model = session.agent, session.model
                self._renamed(session.title)
                break
        self.changed()

    def _renamed(self, title: str) -> None:
        self._heard += 1
        if title == self.title:
            return
        self.title = title
        for attachment in self._attachments.values():
            self._entitle(attachment.client)

    def _entitle(self, client: Client) -> None:
        client.update(self._session_id, updates.title(self.title, client.limits))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._teller = None
        if task.cancelled():
            return
        if task.exception() is not None:
            logger.error("the choices could not be told", exc_info=task.exception())
        elif self._due:
            self.changed()

    async def _tell(self) -> None:
        while self._due:
            settle, self._settle = self._settle, 0.0
            await self._services.sleep(settle)
            self._due = False
            async with self.lock:
                try:
                    choices = await self.read()
                except UpstreamError as error:
                    logger.info("the choices of %s cannot be told: %s", self._session_id, error)
                    return
                if choices.catalogue.complete:
                    self._tell_all(choices)

    def _tell_all(self, choices: Choices) -> None:
        options, mode = choices.options(), choices.current_mode
        commands = choices.commands()
        for owner, known in list(self._told.items()):
            attachment = self._attachments.get(owner)
            if attachment is None:
                continue
            self._told[owner] = Told(options, mode, commands)
            client = attachment.client
            if known.options != options:
                client.update(self._session_id, updates.config_options(options))
            if known.mode != mode and mode is not None:
                client.update(self._session_id, updates.current_mode(mode))
            if known.commands != commands:
                client.update(self._session_id, updates.available_commands(commands))
