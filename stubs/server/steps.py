"""One model step: the request and its retries, the stream, the tools, and every way it ends."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from stubs.choice import TITLE
from stubs.script import Stream, Tool, Wait
from stubs.server import tools
from stubs.server.answer import ABORTED, Answer, Calling, Header
from stubs.server.compactions import Compactions
from stubs.server.config import Settings
from stubs.server.execution import Outcome
from stubs.server.journal import Journal
from stubs.server.permissions import DeclinedError
from stubs.server.project import Project
from stubs.server.prompting import DROPPED, Model, ProviderError, Request
from stubs.server.store import Item, Session
from stubs.server.tools import Call, Shop, ToolError
from stubs.server.usage import price, reference, tokens
from stubs.server.wire import Ids, Json, now_ms

GO_ON: Final = (
    "The previous response was interrupted. "
    "Continue from where you left off without repeating completed content."
)
BLOCKED: Final[Json] = {
    "type": "provider.content-filter",
    "message": "Provider blocked the response",
}
CAPPED: Final[Json] = {
    "type": "tool.execution",
    "message": "Tools are disabled after the maximum agent steps",
}


class Phase(Enum):
    """How far a step has come; an interrupt ends each in its own way."""

    PREPARING = auto()
    REQUESTED = auto()
    STREAMING = auto()
    STREAMED = auto()
    WAITING = auto()
    ENDED = auto()


@dataclass(slots=True)
class Step:
    """A step in progress."""

    session: Session
    header: Header
    answer: Answer
    rules: list[Json]
    mark: int
    cost: float
    last: bool
    phase: Phase = Phase.PREPARING
    raw: str = "stop"
    used: Json = field(default_factory=tokens)

    @property
    def usage(self) -> Json:
        """What a failure after the whole stream says of it."""
        return {"rawFinish": self.raw, "cost": self.cost, "tokens": self.used}


class Steps:
    """Runs the steps of all sessions."""

    def __init__(
        self,
        settings: Settings,
        ids: Ids,
        journal: Journal,
        shop: Shop,
        compactions: Compactions,
    ) -> None:
        self._settings = settings
        self._ids = ids
        self._journal = journal
        self._shop = shop
        self._compactions = compactions
        self._model = Model()

    def refusal(self, session: Session) -> Json | None:
        """The error of a session whose agent does not exist."""
        project = Project(session.directory)
        name = session.agent or project.default_agent
        if project.agent(name) is not None:
            return None
        return {"type": "unknown", "message": f'Agent not found: "{name}"'}

    async def title(self, session: Session) -> None:
        """The model call that names an untitled session; it takes a hidden number."""
        self._journal.usage(session, price(session), tokens())
        self._journal.hidden(session)
        session.title = TITLE
        event = self._journal.durable(session, "session.renamed", {"title": TITLE})
        session.updated = int(event["created"])

    async def compact(self, session: Session, item: Item, stop: asyncio.Event) -> bool:
        """A compaction that was asked for; a failure disturbs no turn. False: it was stopped."""
        error = await self._compactions.run(session, item.id, stop)
        return error is None or error["type"] != "aborted"

    def repair(self, session: Session) -> None:
        """What a killed server left behind."""
        self._compactions.repair(session)

    async def step(self, session: Session, number: int, stop: asyncio.Event) -> Outcome:
        """One step, or what an interrupt leaves of it."""
        project = Project(session.directory)
        name = session.agent or project.default_agent
        agent = project.agent(name) or {}
        ref = reference(session)
        if project.model(ref) is None:
            message = f"Model unavailable: {ref.get('providerID')}/{ref.get('id')}"
            return Outcome("failed", error={"type": "provider.no-route", "message": message})
        if self._compactions.is_due(session):
            error = await self._compactions.run(session, None, stop)
            if error is not None and error["type"] == "aborted":
                return Outcome("interrupted", reason="user")
            if error is not None:
                return Outcome("failed", error={key: error[key] for key in ("type", "message")})
        workspaces = self._shop.workspaces
        header = Header(name, ref, workspaces.snapshot(session.directory))
        step = Step(
            session,
            header,
            self._answer(session, header),
            agent.get("permissions", []),
            workspaces.mark(session.directory),
            price(session),
            last=number >= int(agent.get("steps", 1 << 30)),
        )
        work = asyncio.create_task(self._play(step))
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            work.cancel()
            await asyncio.wait({work})
            await self._wind_down(step)
            return Outcome("interrupted", reason="user")
        finally:
            work.cancel()
            stopped.cancel()
            await asyncio.wait({work, stopped})
            step.answer.abandon()

    async def _play(self, step: Step) -> Outcome:
        first = not any(row["type"] == "assistant" for row in step.session.rows)
        settings = self._settings
        await asyncio.sleep(settings.first_request_delay if first else settings.request_delay)
        attempt = 1
        while True:
            step.phase = Phase.REQUESTED
            try:
                request = self._model.request(step.session, last_step=step.last)
                await self._stream(step, request)
                break
            except ProviderError as failure:
                broken = self._break(step, failure)
                if not failure.retryable or attempt >= self._settings.retry_attempts:
                    if not broken:
                        step.answer.fail(failure.error, self._tree(step))
                    return Outcome("failed", error=failure.error)
                attempt += 1
                await self._back_off(step, attempt, failure, anew=broken)
        return await self._conclude(step, request)

    async def _stream(self, step: Step, request: Request) -> None:
        if request.refusal is not None:
            raise request.refusal
        for action in request.step.actions:
            if isinstance(action, Wait):
                await asyncio.sleep(action.ms / 1000)
            elif isinstance(action, Stream):
                for piece in action.pieces:
                    self._begin(step)
                    step.answer.add(action.kind, piece)
                    if action.pause_ms:
                        await asyncio.sleep(action.pause_ms / 1000)
            elif isinstance(action, Tool):
                self._begin(step)
                call_id = f"call_{request.index}_{len(step.answer.calls)}"
                step.answer.call(call_id, action)
            elif request.drops(action):
                raise ProviderError(DROPPED, retryable=True)
            await asyncio.sleep(0)
        self._begin(step)
        step.raw = request.step.finish
        step.used = tokens(request.step.usage)
        # A response that ends otherwise than by its calls leaves them uncalled.
        step.answer.close(calls=step.raw == "tool_calls")
        step.phase = Phase.STREAMED

    def _begin(self, step: Step) -> None:
        if step.phase is Phase.REQUESTED:
            step.phase = Phase.STREAMING
            step.answer.start()

    def _break(self, step: Step, failure: ProviderError) -> bool:
        """Note a failed attempt. True if it left content behind, and so a failed message."""
        self._begin(step)
        if not step.answer.has_content:
            return False
        step.answer.break_off()
        step.answer.fail_open_calls(failure.error)
        step.answer.fail(failure.error, self._tree(step))
        return True

    async def _back_off(
        self, step: Step, attempt: int, failure: ProviderError, *, anew: bool
    ) -> None:
        """Wait before the next attempt, which is a new message if the last one said something."""
        base = self._settings.retry_base
        pause = min(base * 2 ** (attempt - 2), base * 5)
        body: Json = {"assistantMessageID": step.answer.id, "attempt": attempt}
        body |= {"at": now_ms() + round(pause * 1000), "error": failure.error}
        self._journal.durable(step.session, "session.retry.scheduled", body)
        step.answer.note_retry({key: body[key] for key in ("attempt", "at", "error")})
        step.phase = Phase.WAITING
        await asyncio.sleep(pause)
        if anew:
            event = self._journal.durable(step.session, "session.synthetic", {"text": GO_ON})
            self._journal.note_row(step.session, event, {"text": GO_ON, "type": "synthetic"})
            step.answer = self._answer(step.session, step.header)

    async def _conclude(self, step: Step, request: Request) -> Outcome:
        """The tools, and the end of the step."""
        declined = await self._run_tools(step)
        await asyncio.sleep(self._settings.step_end)
        step.phase = Phase.ENDED
        answer, session = step.answer, step.session
        if declined:
            answer.fail(ABORTED, self._tree(step), step.usage)
            self._journal.usage(session, step.cost, step.used)
            return Outcome("interrupted", reason="shutdown")
        finish = step.raw.replace("_", "-")
        if finish == "content-filter":
            answer.fail(BLOCKED, self._tree(step), {"finish": finish, **step.usage})
            self._journal.usage(session, step.cost, step.used)
            return Outcome("failed", error=BLOCKED)
        answer.end(finish, step.raw, step.cost, step.used, self._tree(step))
        self._journal.usage(session, step.cost, step.used)
        return Outcome("succeeded", again=finish == "tool-calls" and not step.last)

    async def _run_tools(self, step: Step) -> bool:
        """Run all calls side by side to their ends. True when one was declined."""
        if step.raw != "tool_calls":
            return False
        if step.last:
            step.answer.fail_open_calls(CAPPED)
            return False
        tasks = [asyncio.create_task(self._run_tool(step, call)) for call in step.answer.calls]
        try:
            ends = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
        # A declined call is noted last, when its siblings have run to their ends.
        for call, declined in zip(step.answer.calls, ends, strict=True):
            if declined is not None:
                step.answer.fail_call(call, {"type": "aborted", "message": declined})
        return any(declined is not None for declined in ends)

    async def _run_tool(self, step: Step, call: Calling) -> str | None:
        """Run one call and note its end; what is to be said of one that was declined."""
        answer = step.answer
        asked = Call(
            step.session,
            answer.id,
            str(step.header.model["id"]),
            call.id,
            call.tool.name,
            call.tool.input,
            [*step.rules, *(step.session.permissions or [])],
            lambda metadata: answer.progress(call, metadata),
        )
        try:
            result = await tools.run(self._shop, asked)
        except ToolError as error:
            answer.fail_call(call, {"type": error.kind, "message": error.message})
            return None
        except DeclinedError as error:
            return str(error)
        answer.succeed(call, result.content, result.metadata)
        return None

    async def _wind_down(self, step: Step) -> None:
        """The events that an interrupt brings, by phase."""
        if step.phase is Phase.WAITING:
            step.answer.forget_retry()
        if step.phase in (Phase.PREPARING, Phase.WAITING, Phase.ENDED):
            return
        if step.phase is Phase.REQUESTED:
            step.answer.start()
        step.answer.break_off()
        self._fail_interrupted(step)
        await asyncio.sleep(self._settings.wind_down)
        if step.phase is Phase.STREAMED:
            step.answer.fail(ABORTED, self._tree(step), step.usage)
            self._journal.usage(step.session, step.cost, step.used)
        else:
            step.answer.fail(ABORTED, self._tree(step))

    def _fail_interrupted(self, step: Step) -> None:
        for call in step.answer.calls:
            child = call.metadata.get("sessionID")
            message = "Tool execution interrupted"
            if child is not None:
                message += f" (sessionID: {child})"
            step.answer.fail_call(call, {"type": "aborted", "message": message})

    def _answer(self, session: Session, header: Header) -> Answer:
        return Answer(
            self._journal, session, self._ids.make("msg"), header, self._settings.delta_interval
        )

    def _tree(self, step: Step) -> Json:
        workspaces, directory = self._shop.workspaces, step.session.directory
        files = workspaces.since(directory, step.mark)
        return {"snapshot": workspaces.snapshot(directory), "files": files}
