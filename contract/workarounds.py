"""What the adapter does only because of how OpenCode 2.0.15 behaves, and when it can go.

Each entry says why, where the behaviour was seen, what the workaround cannot do, how the state is
set right when it fails, and what makes it superfluous. Sources are sections of the measurements of
that server. The code names its entry where it works around: `Workaround "the name"`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Workaround:
    name: str
    rationale: str
    source: str
    limits: str
    reconciliation: str
    removal: str


WORKAROUNDS: Final = (
    Workaround(
        name="probe with resume:false",
        rationale="A duplicate POST wakes the session and writes a success that never was.",
        source="facts, section 1 (idempotency) and section 7 (false success)",
        limits="An item that was admitted by the probe is parked until it is woken.",
        reconciliation="Inbox, then active: parked items are woken by the PATCH.",
        removal="A duplicate of a known id has no effect, or the server has a lookup by id.",
    ),
    Workaround(
        name="wake by PATCH to steer",
        rationale="Items queued before an interrupt or a restart never run by themselves.",
        source="later experiments 3 and 4",
        limits="Two items woken together get one answer, so only the oldest is woken.",
        reconciliation="409 means that it is no longer pending: the reads decide.",
        removal="The server resumes its inbox, or offers a wake without a change of delivery.",
    ),
    Workaround(
        name="reads after every end of the feed",
        rationale="The feed replays nothing, and a slow reader's stream ends as a clean EOF.",
        source="facts, section 2",
        limits="Text of a part that still runs cannot be read until the part ends.",
        reconciliation="The verdict table; what no row proves is an unknown outcome.",
        removal="The feed takes Last-Event-ID, or the session log carries its events.",
    ),
    Workaround(
        name="polling a fresh catalogue",
        rationale="Lists of a directory that boots are empty or built-in alone, with status 200.",
        source="facts, section 9; the lists in the course of a boot",
        limits="A server without any model costs the first session of a directory the deadline.",
        reconciliation="Events that say that a list changed invalidate what was read.",
        removal="The lists wait for the boot, or their answer says that it is not over.",
    ),
    Workaround(
        name="line filter and limit before the decoder",
        rationale="Every subscriber gets all sessions, and the echo of a prompt of any size.",
        source="facts, sections 1 and 2; later experiments 17",
        limits="An event of ours over the limit is a gap, not an event.",
        reconciliation="The gap's reads carry the full texts.",
        removal="The feed takes a filter by session.",
    ),
    Workaround(
        name="lone surrogates become U+FFFD",
        rationale="The server stores and echoes them, and strict JSON decoders refuse them.",
        source="later experiments 16",
        limits="Such a character of a model or a prompt is not kept.",
        reconciliation="Sent and echoed text are compared after the same replacement.",
        removal="The server refuses or replaces them itself.",
    ),
    Workaround(
        name="idle connections of 4 s",
        rationale="The server closes an idle connection after 5 s, in the middle of a request too.",
        source="facts, section 8",
        limits="A request that meets the close is ambiguous all the same.",
        reconciliation="Reads are repeated; a prompt is probed with its own id.",
        removal="The server announces its keep-alive time or keeps idle connections longer.",
    ),
    Workaround(
        name="an interrupt is sent once",
        rationale="It names a session and not a turn: a second one stops the successor.",
        source="later experiments 6 and 24",
        limits="Near the end of a turn even one interrupt can stop the next turn.",
        reconciliation="A turn of ours that was stopped so is told that it ended elsewhere.",
        removal="An interrupt takes the id of the prompt that it means.",
    ),
    Workaround(
        name="a rejection has a message and waits for its siblings",
        rationale="Without a message it ends the turn, and it rejects the other asks of the step.",
        source="facts, section 5",
        limits="Two rejections in one step end the turn all the same.",
        reconciliation="A turn that ended so settles as end_turn, with a notice.",
        removal="A rejection concerns its own tool alone.",
    ),
    Workaround(
        name="a form is answered with nothing",
        rationale="An open form holds the turn for ever, and its dismissal ends the turn.",
        source="facts, section 6",
        limits="The model is told that the question was left unanswered. A form with a required "
        "field is dismissed instead, which fails its tool.",
        reconciliation="A notice to the client; 404 or 409 means that it was settled before.",
        removal="A dismissal of a question fails its tool alone.",
    ),
    Workaround(
        name="a form of an MCP server is the turn's that calls it",
        rationale="It stands under no session and names no call, and holds its call for ever.",
        source="facts, section 6: MCP servers",
        limits="Two turns of one directory that call the same server are both shown the form.",
        reconciliation="The reads of the directory list it; the first answer withdraws the other.",
        removal="The form names the session or the call that it is of.",
    ),
    Workaround(
        name="the key of a model is never read",
        rationale="The list of models holds the provider's key in clear text.",
        source="facts, section 9",
        limits="None: the fields are not part of the contract's shapes.",
        reconciliation="Not needed.",
        removal="The list does not hold it.",
    ),
    Workaround(
        name="both names of a directory are listed",
        rationale="The server compares directories as strings, and a link is another location to "
        "it: under the real path it would ask before each file that is named by the link.",
        source="measured: sessions under a link and under its real path, and lists of both",
        limits="Of several links to one directory only the one that is asked for is listed.",
        reconciliation="The pages of both lists are merged by the last change.",
        removal="The server lists a directory whatever it is called.",
    ),
    Workaround(
        name="a command is known by a mention",
        rationale="A command takes no id and tells none, and its item looks like any other prompt.",
        source="later experiments on commands: agents of the request come back unchanged",
        limits="Other front ends see a mention of no length in the row.",
        reconciliation="A lost answer is looked up by it: inbox, rows, the newest children.",
        removal="The route of commands takes an id, or its answer tells one.",
    ),
)
