"""One session's machine: everything that happens goes in, everything that follows comes out.

`SessionCore.step(input)` is deterministic and does no I/O: equal inputs give equal outputs, so
a recording replays to the same transcript. It does not know clocks, sockets or ACP; the engine
performs the outputs in order.
"""

from __future__ import annotations

from adapter.core import (
    admission,
    ambient,
    asks,
    boundary,
    cancel,
    commands,
    compaction,
    context,
    descendants,
    forms,
    leaving,
    load,
    markers,
    oddities,
    permissions,
    recover,
    waiting,
)
from adapter.core.gate import Gate
from adapter.core.offsets import OffsetTable
from adapter.core.state import AskStep, Loose, Phase, SessionState, Turn
from adapter.core.translate import translate
from adapter.core.values import (
    Answered,
    Arm,
    Cancel,
    FeedBack,
    FeedLost,
    Fired,
    FormAnswered,
    Heard,
    InboxRead,
    Input,
    Left,
    LetGo,
    Output,
    Parting,
    Posted,
    Recognised,
    Reconcile,
    Reloaded,
    Reloading,
    Replayed,
    Replied,
    ServerSeen,
    Submit,
    Unfollow,
    Watch,
    Woken,
)
from adapter.limits import DEFAULTS, Limits
from contract import events as ev
from contract.shapes import GLOBAL


class SessionCore:
    """The turns of one root session, of every connection that prompts it."""

    def __init__(
        self,
        session_id: str,
        offsets: OffsetTable,
        pid: int = 0,
        cost: float | None = None,
        limits: Limits = DEFAULTS,
    ) -> None:
        self._state = SessionState(session_id, offsets, pid=pid, cost=cost, limits=limits)
        self._gate = Gate(limits)

    @property
    def session_id(self) -> str:
        return self._state.id

    @property
    def children(self) -> frozenset[str]:
        """Descendants that are followed."""
        return frozenset(self._state.children)

    @property
    def turn_ids(self) -> tuple[str, ...]:
        return tuple(self._state.turns)

    @property
    def admitted_ids(self) -> frozenset[str]:
        """Turns that the server has: those that a snapshot can judge."""
        turns = self._state.turns.values()
        return frozenset(turn.id for turn in turns if turn.phase is not Phase.SUBMITTING)

    @property
    def in_gap(self) -> bool:
        """Whether events are missing that no snapshot has made good for yet."""
        return self._state.gap

    def turn(self, turn_id: str) -> Turn | None:
        """The turn in flight of that id, or submitted under it, to look at."""
        return self._state.find(turn_id)

    @property
    def anchors(self) -> frozenset[str]:
        """What the rows of these turns are looked for by."""
        turns = self._state.turns.values()
        return frozenset(turn.key for turn in turns if turn.phase is not Phase.SUBMITTING)

    @property
    def unnamed_ids(self) -> frozenset[str]:
        """Commands that the server has, of which neither an item nor a child is known."""
        turns = self._state.turns.values()
        return frozenset(one.id for one in turns if one.phase is Phase.CALLED and one.child is None)

    def turn_of(self, owner: int) -> Turn | None:
        """The turn that the connection has in flight here."""
        return self._state.of_owner(owner)

    def busy(self, owner: int) -> bool:
        """Whether the connection has a turn in flight here."""
        return self._state.of_owner(owner) is not None

    @property
    def verdicts(self) -> tuple[str, ...]:
        """Of the last reading that was given, one for each turn that it judged, by name."""
        return self._state.judged

    @property
    def owes_a_stop(self) -> bool:
        """Whether a cancel outlived its turn and the server has not confirmed it yet."""
        return any(loose is not Loose.ENDED for loose in self._state.loose.values())

    @property
    def owes_an_answer(self) -> bool:
        """Whether an ask is decided and the server has not said that it is settled."""
        return any(ask.decision is not None for ask in self._state.asks.values())

    @property
    def owes_a_refusal(self) -> bool:
        """Whether something that turns of ours left behind asks, and waits for others so far."""
        asks_of_ours = (ask for ask in self._state.asks.values() if ask.is_left)
        return any(ask.step is AskStep.UNATTENDED for ask in asks_of_ours)

    @property
    def at_rest(self) -> bool:
        """Whether nothing is in flight here, and nobody watches: no turn, no ask, no stop."""
        state = self._state
        return not (state.turns or state.asks or state.ambience or self.owes_a_stop)

    @property
    def beside_bytes(self) -> int:
        """What is remembered of all that is shown beside turns: sub-agents, and work of others."""
        state = self._state
        helpers = sum(errand.weight for errand in state.errands.values())
        return helpers + sum(spectator.weight for spectator in state.ambience)

    def tables(self) -> dict[str, int]:
        """Sizes of what exists only for turns; all zero once every turn is settled."""
        state = self._state
        return {
            "turns": len(state.turns),
            "running": len(state.running),
            "messages": len(state.messages),
            "errands": len(state.errands),
            "shown": len(self._gate),
            "asks": sum(1 for ask in state.asks.values() if ask.turn_id is not None),
        }

    def step(self, given: Input) -> list[Output]:
        """What follows from one input."""
        before = oddities.seen(self._state)
        outputs = self._gate.passed(given, self._step(given))
        outputs.extend(oddities.news(before, oddities.seen(self._state)))
        outputs.extend(map(Unfollow, self._state.unfollowed))
        self._state.unfollowed.clear()
        return outputs

    def _step(self, given: Input) -> list[Output]:
        state = self._state
        match given:
            case Heard(event):
                return self._hear(event)
            case Submit():
                return admission.submit(state, given)
            case Recognised():
                return admission.recognised(state, given)
            case Posted():
                return admission.posted(state, given)
            case Cancel(owner):
                return cancel.asked(state, owner)
            case Answered():
                return permissions.answered(state, given)
            case FormAnswered():
                return forms.answered(state, given)
            case Replied():
                return asks.replied(state, given)
            case FeedLost():
                return recover.feed_lost(state, given)
            case FeedBack():
                needs = state.gap and (state.turns or state.loose or state.asks)
                if not needs:
                    state.gap, state.pid = False, 0
                    state.answering = False
                return [waiting.look(state)] if needs else []
            case ServerSeen(pid):
                # The pid that a running turn was delivered on stays until its verdict.
                if not state.running:
                    state.pid = pid
                return []
            case Reconcile():
                return recover.reconcile(state, given, self._hear)
            case InboxRead():
                return waiting.inbox_read(state, given) if not state.gap else []
            case Woken():
                return waiting.woken(state, given)
            case Fired(timer):
                return self._fired(timer)
            case Reloading():
                return load.reloading(state, given)
            case Replayed():
                return load.replayed(state, given)
            case Reloaded(owner, unfinished):
                ambient.loaded(state, owner, unfinished)
                return []
            case Watch(owner, wanted):
                if wanted:
                    state.ambience.join(owner, state.limits.turn_context_bytes)
                else:
                    state.ambience.leave(owner)
                return []
            case Left():
                return leaving.left(state, given)
            case LetGo():
                return leaving.let_go(state)
            case Parting():
                return asks.deny_left(state)

    def _hear(self, event: ev.Event) -> list[Output]:
        state = self._state
        state.heard += 1
        if isinstance(event, ev.SessionCreated):
            if event.parent_id is not None:
                descendants.made(state, event.session_id, event.parent_id)
                descendants.entitle(state, event.session_id, event.title)
            return []
        if event.session_id != state.id:
            return self._hear_child(event)
        taken = context.admits(state, event)
        out = self._hear_root(event) if taken else context.refused(state, event)
        return out + context.tend(state, event) + ambient.heard(state, event)

    def _hear_root(self, event: ev.Event) -> list[Output]:
        state = self._state
        match event:
            case ev.InboxEnqueued():
                return boundary.enqueued(state, event) + waiting.queue_moved(state)
            case ev.InboxDelivered():
                return boundary.delivered(state, event.inbox_id) + waiting.queue_moved(state)
            case ev.InboxCancelled():
                return boundary.withdrawn(state, event.inbox_id) + waiting.queue_moved(state)
            case ev.ExecutionStarted():
                state.undelivered = True
                return []
            case ev.ExecutionSucceeded() | ev.ExecutionFailed() | ev.ExecutionInterrupted():
                return boundary.execution_ended(state, event)
            case ev.SessionDeleted():
                return boundary.deleted(state)
            case ev.CompactionStarted():
                return markers.started(state, event)
            case ev.CompactionEnded():
                return compaction.ended(state, event)
            case ev.CompactionFailed():
                return compaction.failed(state, event)
            case ev.UsageUpdated():
                state.cost = event.cost
                return []
            case ev.StepEnded():
                return boundary.step_ended(state, event)
            case ev.StepStarted():
                boundary.step_started(state, event)
                return translate(state, event)
            case ev.RetryScheduled():
                boundary.retrying(state, event)
                return translate(state, event)
            case ev.ToolSuccess() | ev.ToolFailed():
                over = asks.tool_over(state, event)
                return translate(state, event) + over
            case ev.MessageEvent():
                return translate(state, event)
            case _:
                return self._hear_ask(event)

    def _hear_child(self, event: ev.Event) -> list[Output]:
        """What a descendant asks, and what it does for a turn."""
        if event.session_id == GLOBAL:
            return asks.heard_of_mcp(self._state, event)
        if not descendants.heard(self._state, event.session_id):
            return []
        shown = context.child_heard(self._state, event)
        match event:
            case ev.InboxEnqueued():
                mark = event.item.payload.call
                return commands.child_enqueued(self._state, mark, event.session_id)
            case ev.ToolSuccess() | ev.ToolFailed():
                return shown + asks.tool_over(self._state, event)
            case _:
                return shown + self._hear_ask(event)

    def _hear_ask(self, event: ev.Event) -> list[Output]:
        match event:
            case ev.PermissionAsked():
                return asks.appeared(self._state, event.ask)
            case ev.PermissionReplied():
                return asks.gone(self._state, event.request_id)
            case ev.FormCreated():
                return asks.appeared(self._state, event.form)
            case ev.FormReplied() | ev.FormCancelled():
                return asks.gone(self._state, event.form_id)
            case _:
                return []

    def _fired(self, timer: str) -> list[Output]:
        state = self._state
        name, _, key = timer.partition(":")
        match name:
            case "cancel":
                turn = state.turns.get(key)
                return cancel.late(state, turn) if turn else []
            case "longest":
                return cancel.overtime(state, key)
            case "patience":
                return waiting.promote(state, key)
            case "parked" | "ahead" | "watch":
                if not state.waiting() or state.gap:
                    return []
                rearm: list[Output] = [Arm("watch", "watch")] if name == "watch" else []
                return waiting.check(state) + rearm
            case "quiet":
                return self._quiet()
            case "called":
                late = commands.overdue(state) and not state.gap
                return [waiting.look(state)] if late else []
            case "lost":
                return [waiting.look(state)] if state.turns and not state.gap else []
            case "gap":
                return recover.gap_overdue(state)
            case "reconnecting":
                return recover.still_away(state)
            case "unattended":
                return asks.unattended(state, key)
            case "reply":
                return asks.reply_again(state, key)
            case "loose":
                return cancel.loose_due(state)
            case _:
                return []

    def _quiet(self) -> list[Output]:
        """Rule 7: a running turn without an event for a while is checked against the reads."""
        state = self._state
        if not (state.running or state.compacting() or commands.carried_out(state)):
            return []
        silent = state.heard == state.heard_at_check
        state.heard_at_check = state.heard
        out: list[Output] = [Arm("quiet", "quiet")]
        return [waiting.look(state), *out] if silent and not state.gap else out
