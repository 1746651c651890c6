"""Answers to forms (lifecycle rule 14): the client's, or none, so that the turn goes on.

A form that gets no answer is answered with nothing: the model is told "Unanswered" (facts,
section 6). The server refuses that for a form with a required field. Such a one is dismissed:
its tool fails and the turn goes on. Only the question tool takes a dismissal for the end of the
turn, and none of its fields is required (measured on 2.0.15).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from adapter.core.state import Ask, AskStep, SessionState, Turn
from adapter.core.values import (
    AnswerForm,
    DismissForm,
    FormAnswered,
    FormFate,
    Notice,
    Output,
)
from contract.shapes import GLOBAL, Form, JsonObject

_WHY: Final[Mapping[FormFate, str]] = MappingProxyType(
    {
        "unable": "The agent asked a question that this client cannot show; it goes on without an "
        "answer.",
        "credential": "The agent asked for what looks like a credential, which no form may ask "
        "for; it goes on without an answer.",
    }
)
REFUSED: Final = (
    "The server did not take the answer to the agent's question; it goes on without one."
)


def answered(state: SessionState, given: FormAnswered) -> list[Output]:
    """The client's answer; a second one, or one for a form that is over, changes nothing."""
    ask = state.asks.get(given.form_id)
    if ask is None or ask.step is not AskStep.SHOWN or ask.is_permission:
        return []
    why = _WHY.get(given.fate)
    told = _tell(state, ask, why) if why else []
    return told + (_send(ask, given.answer) if given.fate == "answered" else left_unanswered(ask))


def left_unanswered(ask: Ask) -> list[Output]:
    """Answer with nothing, so that the turn goes on; an MCP server is told that it gets none."""
    return dismiss(ask) if ask.ask.session_id == GLOBAL else _send(ask, {})


def abandon(state: SessionState, turn: Turn) -> list[Output]:
    """The turn is being stopped, which takes no form of an MCP server away (measured)."""
    return [
        output
        for ask in state.asks.values()
        if ask.turn_id == turn.id and ask.ask.session_id == GLOBAL
        if ask.step is not AskStep.REPLYING
        for output in dismiss(ask)
    ]


def _send(ask: Ask, answer: JsonObject) -> list[Output]:
    ask.step = AskStep.REPLYING
    ask.decision = "answer"
    ask.answer = answer
    return [AnswerForm(ask.ask.session_id, ask.ask.id, answer)]


def refused(state: SessionState, ask: Ask) -> list[Output]:
    """The server does not take the answer: none is tried next, and then the form is dismissed."""
    if ask.answer:
        return _tell(state, ask, REFUSED) + left_unanswered(ask)
    return dismiss(ask)


def reply(ask: Ask, form: Form) -> Output:
    """The request that settles the form."""
    if ask.decision == "dismiss":
        return DismissForm(form.session_id, form.id)
    return AnswerForm(form.session_id, form.id, ask.answer)


def dismiss(ask: Ask) -> list[Output]:
    """Take the form away from everybody."""
    ask.step = AskStep.REPLYING
    ask.decision = "dismiss"
    return [DismissForm(ask.ask.session_id, ask.ask.id)]


def _tell(state: SessionState, ask: Ask, why: str) -> list[Output]:
    turn = state.turns.get(ask.turn_id) if ask.turn_id else None
    return [Notice(turn.owner, "form", why)] if turn is not None else []
