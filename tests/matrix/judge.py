"""What must hold in every cell, whatever the fault."""

from __future__ import annotations

from typing import Final

from stubs.client import AcpClientError
from tests.matrix.phases import Phase
from tests.matrix.scene import LOST, Answer, Scene
from tests.scenarios.stage import statuses, words

NEXT: Final = "@@text 7@@"
NEXT_TEXT: Final = words(7)
WHOLE: Final = ("end_turn",)
GONE: Final = (-32002, -32055)


async def faults(scene: Scene, phase: Phase, answer: Answer) -> list[str]:
    """Sentences on what is wrong; none: the cell is in order."""
    found = [*_texts(scene, phase, answer), *_tools(scene, answer), *_admissions(scene, answer)]
    found += await _aftermath(scene)
    return found


def _texts(scene: Scene, phase: Phase, answer: Answer) -> list[str]:
    """Each character of the answer once, and none of anybody else."""
    shown = scene.agent.transcript(scene.session)
    found: list[str] = []
    pairs = (
        ("text", shown.text(), phase.texts),
        ("thought", shown.text("agent_thought_chunk"), phase.thoughts),
    )
    for kind, had, whole in pairs:
        if answer.outcome in WHOLE and had != whole:
            found.append(f"{kind} of a finished turn: {had!r}, not {whole!r}")
        elif not whole.startswith(had):
            found.append(f"{kind} that the model did not write: {had!r}")
    return found


def _tools(scene: Scene, answer: Answer) -> list[str]:
    """An answered turn leaves no tool open."""
    ends = statuses(scene.agent.transcript(scene.session))
    is_open = [status for status in ends if status not in ("completed", "failed")]
    return [f"tools left open: {is_open}"] if is_open and answer.outcome != LOST else []


def _admissions(scene: Scene, answer: Answer) -> list[str]:
    """A prompt is admitted once, or not at all if the answer says so."""
    if answer.message_id is None:
        return []
    times = scene.lane.backend.admissions[answer.message_id]
    admitted = answer.audit.get("admitted", True)
    allowed = {True: (1,), False: (0,), None: (0, 1)}[admitted]
    return [] if times in allowed else [f"admitted {times} times, told {admitted}"]


async def _aftermath(scene: Scene) -> list[str]:
    """The session serves the next prompt as if nothing had been, unless it is gone."""
    scene.mend_way()
    scene.patience.set()
    agent = await scene.lane.agent()
    try:
        await agent.resume(scene.session, scene.project)
        before = agent.transcript(scene.session).text()
        result = await agent.prompt(scene.session, NEXT)
        told = agent.transcript(scene.session).text().removeprefix(before)
        await agent.close_session(scene.session)
    except AcpClientError as error:
        gone = error.code in GONE and error.message.startswith("Session not found")
        return [] if gone else [f"the next prompt failed: {error}"]
    wrong = agent.faults()
    if (result["stopReason"], told) != ("end_turn", NEXT_TEXT):
        wrong.append(f"the next prompt: {result['stopReason']}, {told!r}")
    return wrong
