"""Answers of the server as typed values; every way in which they do not fit is `ShapeMismatch`."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from adapter.upstream.errors import ShapeMismatch
from adapter.upstream.transport import Answer
from contract.reads import AnyRow, parse_row

Shape = TypeVar("Shape", bound=BaseModel)


def an_object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ShapeMismatch("The OpenCode server answered with another shape: no object.")
    return value


def objects(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise ShapeMismatch("The OpenCode server answered with another shape: no list.")
    return [an_object(item) for item in value]


def data(answer: Answer) -> object:
    """The `data` of an answer; most routes wrap theirs so."""
    return an_object(answer.json()).get("data")


class Walk:
    """The pages of one list, one after the other; `count` of them were read.

    A cursor that is blank, of another type or repeated is a `ShapeMismatch`: what was read until
    then is a part of the list that nobody may take for the whole. `came_by` is the cursor that a
    walk goes on from.
    """

    def __init__(self, came_by: str | None = None) -> None:
        self._cursors: set[str] = set() if came_by is None else {came_by}

    @property
    def count(self) -> int:
        return len(self._cursors)

    def page(self, answer: Answer) -> tuple[list[dict[str, Any]], str | None]:
        """The items of a page and the cursor of the next one; None at the end of the list.

        An empty page is the end, whatever its cursor (OpenCode facts, section 7).
        """
        body = an_object(answer.json())
        items = objects(body.get("data"))
        cursor = body.get("cursor")
        following = cursor.get("next") if isinstance(cursor, dict) else None
        if not items or following is None:
            return items, None
        if not isinstance(following, str) or not following.strip():
            raise ShapeMismatch("The OpenCode server sent a page with a cursor that is none.")
        if following in self._cursors:
            raise ShapeMismatch("The OpenCode server sent a page that leads back to itself.")
        self._cursors.add(following)
        return items, following


def shaped(model: type[Shape], raw: object) -> Shape:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise _mismatch(model.__name__, error) from None


def row_of(raw: dict[str, Any]) -> AnyRow:
    try:
        return parse_row(raw)
    except ValidationError as error:
        raise _mismatch("message", error) from None


def _mismatch(what: str, error: ValidationError) -> ShapeMismatch:
    """Names the fields alone: the values may be a user's text or a key."""
    fields = ", ".join(".".join(str(step) for step in item["loc"]) for item in error.errors()[:3])
    return ShapeMismatch(f"The OpenCode server sent a {what} of another shape: {fields}.")
