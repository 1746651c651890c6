"""A core of one session under test: it is told things, and what it says is written down.

Every step checks what has to hold at all times: one `Settled` a turn, no update of a turn after
it, every table empty and every timer of turns disarmed once no turn is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from adapter.core import values as v
from adapter.core.offsets import OffsetTable
from adapter.core.session import SessionCore
from adapter.limits import DEFAULTS, Limits
from contract import events as ev
from contract.reads import AnyRow, parse_row

SESSION: Final = "ses_1"
CHILD: Final = "ses_child"

OutputT = TypeVar("OutputT")


def event(kind: str, data: Mapping[str, Any]) -> ev.Event:
    """An event by the feed's own words. Raises ValueError when the adapter would not read it."""
    parsed = ev.parse({"type": kind, "data": data})
    if not isinstance(parsed, ev.Event):
        raise ValueError(f"no event: {parsed}")
    return parsed


def row(kind: str, row_id: str, **fields: Any) -> AnyRow:
    """A message row by the server's own words."""
    return parse_row({"id": row_id, "type": kind, **fields})


def text_row(row_id: str, text: str = "", finish: str | None = None, **fields: Any) -> AnyRow:
    """An assistant row with one text part."""
    content = [{"type": "text", "text": text}]
    return row("assistant", row_id, content=content, finish=finish, **fields)


@dataclass
class Transcript:
    """What a client ends up with: texts by (message, kind), last tool states, asks, outcomes.

    `beside` is the same of what is no turn's own: a gap may leave holes there.
    """

    texts: dict[tuple[str, str], str] = field(default_factory=dict)
    tools: dict[tuple[str, str], v.ToolStatus] = field(default_factory=dict)
    asks: set[str] = field(default_factory=set)
    outcomes: dict[str, v.Outcome] = field(default_factory=dict)
    beside: Transcript | None = field(default=None, compare=False)


class Drive:
    """One `SessionCore` and everything that came out of it."""

    def __init__(
        self,
        pid: int = 1,
        session: str = SESSION,
        offsets: OffsetTable | None = None,
        limits: Limits = DEFAULTS,
    ) -> None:
        self.session = session
        self.offsets = OffsetTable() if offsets is None else offsets
        self._alone = offsets is None
        self.core = SessionCore(session, self.offsets, pid=pid, limits=limits)
        self.said: list[v.Output] = []
        self.timers: dict[str, str] = {}
        self.seen = Transcript()
        self._owners: dict[int, str] = {}
        self._shown: set[tuple[int, str, str]] = set()

    def step(self, given: v.Input) -> list[v.Output]:
        if isinstance(given, v.Submit):
            self._owners[given.owner] = given.turn_id
        if isinstance(given, v.Reloading):
            # The rows hold nothing of children: their client begins with nothing of them.
            beside, self.seen.beside = self.seen.beside, None
            for at in beside.tools if beside is not None else ():
                self._shown.discard((given.owner, *at))
        if isinstance(given, v.Fired):
            self.timers.pop(given.timer, None)
        out = self.core.step(given)
        for output in out:
            self._take(output)
        self.said += out
        assert set(self.core.turn_ids) == set(self._owners.values())
        if not self.core.turn_ids:
            assert not any(self.core.tables().values()), self.core.tables()
            assert len(self.offsets) == 0 or not self._alone
            armed = {name.partition(":")[0] for name in self.timers}
            assert armed <= {"unattended", "loose", "reply"}
        return out

    def _take(self, output: v.Output) -> None:
        seen = self.seen
        match output:
            case v.Prompted() | v.Chunk(origin=v.OfRun()) | v.Tool(origin=v.OfRun()):
                seen = Transcript()
            case v.Chunk(origin=v.OfChild()) | v.Tool(origin=v.OfChild()):
                self.seen.beside = seen = self.seen.beside or Transcript()
            case _:
                pass
        match output:
            case v.Tool(origin=v.OfRun()):
                self._announced(output)
            case v.Prompted() | v.Chunk(origin=v.OfRun()):
                pass
            case v.ShowForm():
                assert output.owner in self._owners, f"an update after the end: {output}"
                seen.asks.add(output.form.id)
            case v.Chunk() | v.Tool() | v.Progress() | v.Usage() | v.Notice() | v.AskClient():
                assert output.owner in self._owners, f"an update after the end: {output}"
                match output:
                    case v.Chunk(_, message_id, kind, text):
                        assert text, "an empty chunk"
                        key = (message_id, kind)
                        seen.texts[key] = seen.texts.get(key, "") + text
                    case v.Tool():
                        call = (output.message_id, output.call_id)
                        self._announced(output)
                        seen.tools[call] = output.status
                    case v.AskClient():
                        seen.asks.add(output.ask.id)
                    case _:
                        pass
            case v.Settled(owner, outcome):
                assert owner in self._owners, "settled twice"
                assert self._owners.pop(owner) == outcome.message_id
                assert (outcome.stop is None) == (outcome.code < 0)
                seen.outcomes[outcome.message_id] = outcome
            case v.Renamed(before, after):
                self._rename(before, after)
            case v.Arm(timer, wait):
                self.timers[timer] = wait
            case v.Disarm(timer):
                self.timers.pop(timer, None)
            case _:
                pass

    def _announced(self, tool: v.Tool) -> None:
        """A client is told of a call once, whether its own turn tells or a run of others."""
        shown = (tool.owner, tool.message_id, tool.call_id)
        assert tool.first == (shown not in self._shown), tool
        self._shown.add(shown)

    def _rename(self, before: str, after: str) -> None:
        owner = next(owner for owner, turn_id in self._owners.items() if turn_id == before)
        self._owners[owner] = after
        self.timers = {
            f"{name}:{after}" if key == before else timer: wait
            for timer, wait in self.timers.items()
            for name, _, key in [timer.partition(":")]
        }

    # --- what happens, in words -----------------------------------------------------------

    def hear(self, kind: str, **data: Any) -> list[v.Output]:
        """An event of the session, `session.` left out: `hear("step.ended", finish="stop", …)`."""
        full = kind.partition(".")[0] in ("permission", "form")
        name = kind if full else f"session.{kind}"
        return self.step(v.Heard(event(name, {"sessionID": self.session, **data})))

    def submit(self, turn_id: str, owner: int = 1) -> None:
        self.step(v.Submit(turn_id, owner))

    def admit(self, turn_id: str, owner: int = 1) -> None:
        """A turn that waits in the inbox."""
        self.submit(turn_id, owner)
        self.step(v.Posted(turn_id, v.Admission.ADMITTED))

    def run(self, turn_id: str, owner: int = 1) -> None:
        """A turn that was delivered."""
        self.admit(turn_id, owner)
        self.deliver(turn_id)

    def deliver(self, inbox_id: str) -> list[v.Output]:
        return self.hear("inbox.delivered", inboxID=inbox_id)

    def started(self, message: str) -> None:
        self.hear("step.started", assistantMessageID=message)

    def text(self, message: str, text: str, *, end: bool = True) -> None:
        """A text part of one delta, ended or left open."""
        part = {"assistantMessageID": message, "ordinal": 0}
        self.hear("text.started", **part)
        self.hear("text.delta", **part, delta=text)
        if end:
            self.hear("text.ended", **part, text=text)

    def ended(self, message: str, finish: str = "stop", **data: Any) -> list[v.Output]:
        return self.hear("step.ended", assistantMessageID=message, finish=finish, **data)

    def tool(self, message: str, call: str = "call_1", name: str = "shell") -> None:
        """A tool that runs."""
        self.hear("tool.input.started", assistantMessageID=message, id=call, name=name)
        self.hear("tool.called", assistantMessageID=message, id=call, input={"a": 1})

    def tool_over(self, message: str, call: str = "call_1", error: str = "") -> list[v.Output]:
        at = {"assistantMessageID": message, "id": call}
        if error:
            return self.hear("tool.failed", **at, error={"type": "aborted", "message": error})
        return self.hear("tool.success", **at, content=[{"type": "text", "text": "ok"}])

    def ask(
        self, ask_id: str, message: str | None, call: str = "call_1", session: str | None = None
    ) -> list[v.Output]:
        return self.step(
            v.Heard(event("permission.asked", ask_data(ask_id, message, call, session)))
        )

    def snapshot(
        self,
        *rows: AnyRow,
        inbox: Iterable[str] = (),
        buffer: Iterable[ev.Event] = (),
        **fields: Any,
    ) -> list[v.Output]:
        """A snapshot that judges every admitted turn."""
        fields.setdefault("judged", self.core.admitted_ids)
        fields.setdefault("pid", 1)
        taken = v.Snapshot(inbox=frozenset(inbox), rows=rows, **fields)
        return self.step(v.Reconcile(taken, tuple(buffer)))

    def gap(self) -> None:
        self.step(v.FeedLost())
        self.step(v.FeedBack())

    def fire(self, timer: str) -> list[v.Output]:
        """Fire a timer that is armed."""
        assert timer in self.timers, (timer, self.timers)
        return self.step(v.Fired(timer))

    # --- what came of it ------------------------------------------------------------------

    def outcome(self, turn_id: str) -> v.Outcome:
        return self.seen.outcomes[turn_id]

    def stop(self, turn_id: str) -> v.Stop | None:
        return self.outcome(turn_id).stop

    def code(self, turn_id: str) -> int:
        return self.outcome(turn_id).code

    def notices(self) -> list[str]:
        return [output.kind for output in of(self.said, v.Notice)]


def of(outputs: Iterable[v.Output], kind: type[OutputT]) -> list[OutputT]:
    """The outputs of one kind."""
    return [output for output in outputs if isinstance(output, kind)]


def ask_data(
    ask_id: str, message: str | None, call: str = "call_1", session: str | None = None
) -> dict[str, Any]:
    """A permission request as the server shows it, in events and in lists."""
    source = {"type": "tool", "messageID": message, "id": call} if message else None
    owner = session or SESSION
    return {"id": ask_id, "sessionID": owner, "action": "shell", "source": source}
