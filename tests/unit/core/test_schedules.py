"""Random schedules: our turns and foreign prompts on one session, cuts, cancels, late reads.

Whatever the order, every turn settles, and no character is lost, repeated or somebody else's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapter.core import values as v
from contract import events as ev
from contract.errors import Code
from tests.support.drive import Drive
from tests.support.simulated import Script, Simulated

OURS: Final = {"msg_acp_a": 1, "msg_acp_b": 2}
WATCHER: Final = 3
ACTIONS: Final = (
    "advance", "hear", "advance", "hear", "advance", "hear", "read", "read",
    "submit a", "submit b", "post", "foreign queue", "foreign steer", "foreign interrupt",
    "cut", "back", "cancel a", "cancel b", "approve", "reject", "fire", "leave b", "effect",
)  # fmt: skip
# For those who watch: more of it is lived through, and answers change hands.
WATCHED: Final = (
    *("go on",) * 12, "read", "read", "post", "post", "back", "effect", "approve", "fire",
    "submit a", "submit b", "foreign queue", "foreign steer", "leave a", "leave b", "cancel a",
    "promote", "promote",
)  # fmt: skip


class World:
    """The simulated server, a feed between it and the core, and the engine's part by hand."""

    def __init__(self, scripts: dict[str, Script], watchers: Sequence[int] = ()) -> None:
        self.server = Simulated()
        self.drive = Drive()
        self.scripts = scripts
        self.up = True
        self.heard = 0
        self.effects: list[v.Output] = []
        self.posting: list[str] = []
        self.submitted: set[str] = set()
        self.asked: list[str] = []
        self.foreign = 0
        self.reading: tuple[frozenset[str], tuple[str, ...]] | None = None
        self.want = False
        self.buffer: list[ev.Event] = []
        self.cuts = 0
        # What each client was told of each text, by its own turn or as a run of others.
        self.told: dict[tuple[int, str, str], str] = {}
        for owner in watchers:
            self.step(v.Watch(owner))

    def step(self, given_: v.Input) -> None:
        for output in self.drive.step(given_):
            match output:
                case v.Chunk():
                    key = (output.owner, output.message_id, output.kind)
                    self.told[key] = self.told.get(key, "") + output.text
                case v.TakeSnapshot():
                    self.want = self.up
                case v.AskClient(_, ask, _):
                    self.asked.append(ask.id)
                case v.WithdrawAsk(ask_id):
                    self.asked = [one for one in self.asked if one != ask_id]
                case v.Interrupt() | v.Withdraw() | v.Wake() | v.Reply() | v.ReadInbox():
                    self.effects.append(output)
                case _:
                    pass

    def do(self, action: str) -> None:  # one branch an action
        server = self.server
        match action.split():
            case ["advance"]:
                server.advance()
            case ["hear"]:
                self.hear()
            case ["go", "on"]:
                server.advance()
                self.hear()
            case ["read"]:
                self.read()
            case ["submit", who]:
                self.submit(f"msg_acp_{who}")
            case ["post"]:
                self.post()
            case ["effect"]:
                self.effect()
            case ["foreign", "interrupt"]:
                server.interrupt()
            case ["foreign", delivery]:
                self.foreign += 1
                name = f"msg_f{self.foreign}"
                server.post(name, self.scripts["foreign"], delivery)
            case ["cut"] if self.up:
                self.cuts += 1
                self.up, self.reading, self.want = False, None, False
                self.buffer.clear()
                self.step(v.FeedLost())
            case ["blink"]:
                for part in ("cut", "advance", "advance", "back"):
                    self.do(part)
            case ["promote"]:
                # Somebody lets what is queued join the running answer at its next step.
                for turn in OURS:
                    server.wake(turn)
            case ["back"] if not self.up:
                self.up, self.heard = True, len(server.emitted)
                self.step(v.FeedBack())
            case ["cancel", who]:
                self.step(v.Cancel(OURS[f"msg_acp_{who}"]))
            case ["leave", who]:
                self.step(v.Left(OURS[f"msg_acp_{who}"], interrupt=True))
            case ["approve" | "reject" as what] if self.asked:
                decision: v.Decision = "once" if what == "approve" else "reject"
                self.step(v.Answered(self.asked.pop(0), decision))
            case ["fire"]:
                soon = ("parked", "ahead", "lost", "cancel")
                for timer in [t for t in self.drive.timers if t.partition(":")[0] in soon][:1]:
                    self.step(v.Fired(timer))
            case _:
                pass

    def submit(self, turn: str) -> None:
        if turn not in self.submitted and self.up:
            self.submitted.add(turn)
            self.posting.append(turn)
            self.drive.submit(turn, OURS[turn])

    def post(self) -> None:
        if self.posting:
            turn = self.posting.pop(0)
            if self.drive.core.turn(turn) is not None:
                self.server.post(turn, self.scripts[turn])
                self.step(v.Posted(turn, v.Admission.ADMITTED))

    def effect(self) -> None:
        """Perform the oldest request that the core asked for."""
        if not self.effects:
            return
        server = self.server
        match self.effects.pop(0):
            case v.Interrupt():
                server.interrupt()
            case v.Withdraw(turn_id):
                server.delete(turn_id)
            case v.Wake(turn_id, requeue):
                if requeue:
                    server.requeue(turn_id)
                self.step(v.Woken(turn_id, server.wake(turn_id)))
            case v.Reply(_, ask_id, decision, go_on):
                found = server.reply(ask_id, decision, go_on=go_on)
                self.step(v.Replied(ask_id, settled=True, found=found))
            case v.ReadInbox():
                self.step(v.InboxRead(tuple(server.view.inbox), server.view.active))
            case _:
                pass

    def hear(self) -> None:
        if not self.up or self.heard == len(self.server.emitted):
            return
        event = self.server.emitted[self.heard]
        self.heard += 1
        if self.want:
            self.buffer.append(event)
        else:
            self.step(v.Heard(event))

    def read(self) -> None:
        """The first half of a snapshot reads the inbox, the second half the rest."""
        if not self.want:
            return
        if self.reading is None:
            judged = self.drive.core.admitted_ids
            self.reading = (judged, tuple(self.server.view.inbox))
            return
        judged, inbox = self.reading
        # What a read shows was emitted before: the feed brings it no later than the answer.
        while self.heard < len(self.server.emitted):
            self.hear()
        self.want, self.reading = False, None
        buffer, self.buffer = tuple(self.buffer), []
        self.step(v.Reconcile(self.server.view.snapshot(judged, inbox), buffer))

    def finish(self) -> None:
        """Let everything that is under way come to its end."""
        for _ in range(400):
            if not self.drive.core.turn_ids:
                return
            for action in ("back", "post", "effect", "advance", "hear", "read", "approve"):
                self.do(action)
            busy = self.server.advance() or self.effects or self.want or self.posting
            if not busy and self.heard == len(self.server.emitted):
                self.server.answer_foreign_ask(self.submitted)
                for timer in list(self.drive.timers):
                    if timer != "gap" and timer in self.drive.timers:
                        self.step(v.Fired(timer))
        raise AssertionError(f"still in flight: {self.drive.core.turn_ids}")

    def check_watchers(self) -> None:
        """Nothing twice, whoever told it; and all of it, if no event was missed."""
        while self.up and not self.want and self.heard < len(self.server.emitted):
            self.hear()
        for (_, message, kind), text in self.told.items():
            full = self.server.texts[message, kind]
            assert full.startswith(text), (message, text, full)
        if not self.cuts and not self.want:
            told = {(message, kind): text for (owner, message, kind), text in self.told.items()
                    if owner == WATCHER}  # fmt: skip
            assert told == self.server.texts

    def check(self) -> None:
        outcomes, server = self.drive.seen.outcomes, self.server
        assert set(outcomes) == self.submitted
        for (message, kind), text in self.drive.seen.texts.items():
            owners = server.owners[message]
            assert owners & set(OURS), f"foreign characters: {message}"
            full = server.texts[message, kind]
            assert full.startswith(text), (message, text, full)
        for turn, outcome in outcomes.items():
            if outcome.stop is not v.Stop.END_TURN or outcome.reason:
                continue
            for (message, kind), full in server.texts.items():
                if server.owners[message] == {turn}:
                    assert self.drive.seen.texts.get((message, kind)) == full, (message, outcome)
        for turn, outcome in outcomes.items():
            if outcome.code == Code.UNKNOWN_OUTCOME:
                raise AssertionError(f"{turn}: nothing was lost at the server: {outcome}")


scripts = st.builds(
    Script,
    words=st.integers(1, 6),
    tools=st.integers(0, 2),
    asks=st.booleans(),
    drops=st.booleans(),
    fails=st.sampled_from([False, False, False, True]),
)


@settings(
    max_examples=600,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    scripts=st.fixed_dictionaries({**dict.fromkeys(OURS, scripts), "foreign": scripts}),
    actions=st.lists(st.sampled_from(ACTIONS), min_size=30, max_size=150),
)
def test_every_turn_settles_and_every_character_arrives_once(
    scripts: dict[str, Script], actions: list[str]
) -> None:
    play(World(scripts), actions).check()


@settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    scripts=st.fixed_dictionaries({**dict.fromkeys(OURS, scripts), "foreign": scripts}),
    actions=st.one_of(
        st.lists(st.sampled_from(WATCHED), min_size=60, max_size=200),
        st.lists(st.sampled_from((*WATCHED, "blink", "cut")), min_size=60, max_size=200),
    ),
)
def test_whoever_watches_is_told_nothing_twice(
    scripts: dict[str, Script], actions: list[str]
) -> None:
    """Clients that watch and prompt at once, and one that only watches."""
    world = play(World(scripts, watchers=(*OURS.values(), WATCHER)), actions)
    world.check()
    world.check_watchers()


def play(world: World, actions: list[str]) -> World:
    world.do("submit a")
    for action in actions:
        world.do(action)
    world.do("submit b")
    world.finish()
    return world
