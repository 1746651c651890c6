"""The fields of a form, as the server writes them (facts, section 6).

The server checks an answer against them: every key must be a field's, every value of the field's
kind and within its bounds, and no field may be answered whose conditions (`when`) do not hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from contract.shapes import Form, Shape

Format = Literal["email", "uri", "date", "date-time"]
Value = str | int | float | bool | list[str]
"""What one field may be answered with."""


class Option(Shape):
    """A choice: `value` is answered, `label` is shown."""

    value: str
    label: str
    description: str | None = None


class Condition(Shape):
    """Of an earlier field. It holds for no field that is not answered."""

    key: str
    op: Literal["eq", "neq"]
    value: str | float | bool


class FieldShape(Shape):
    """What all kinds share. A hidden field is none that a user fills in."""

    key: str
    title: str | None = None
    description: str | None = None
    required: bool = False
    hidden: bool = False
    when: tuple[Condition, ...] = ()

    @property
    def label(self) -> str:
        return self.title or self.key


class TextField(FieldShape):
    """With `options` a choice; `custom` lets other words stand beside them. Lengths in UTF-16."""

    type: Literal["string"]
    format: Format | None = None
    min_length: Annotated[int | None, Field(alias="minLength")] = None
    max_length: Annotated[int | None, Field(alias="maxLength")] = None
    pattern: str | None = None
    placeholder: str | None = None
    default: str | None = None
    options: tuple[Option, ...] = ()
    custom: bool = False


class NumberField(FieldShape):
    """Bounds are inclusive."""

    type: Literal["number", "integer"]
    minimum: float | None = None
    maximum: float | None = None
    default: float | None = None


class SwitchField(FieldShape):
    type: Literal["boolean"]
    default: bool | None = None


class ManyField(FieldShape):
    """Several of `options`; `custom` lets other words stand among them."""

    type: Literal["multiselect"]
    options: tuple[Option, ...] = ()
    min_items: Annotated[int | None, Field(alias="minItems")] = None
    max_items: Annotated[int | None, Field(alias="maxItems")] = None
    custom: bool = False
    default: tuple[str, ...] | None = None


AnyField = TextField | NumberField | SwitchField | ManyField


class _Fields(Shape):
    fields: tuple[Annotated[AnyField, Field(discriminator="type")], ...]


def fields(form: Form) -> tuple[AnyField, ...] | None:
    """The fields; None if one is of a kind that only its server can ask for (`external`)."""
    try:
        return _Fields.model_validate({"fields": form.fields}).fields
    except ValidationError:
        return None


def is_active(field: AnyField, answer: Mapping[str, Value]) -> bool:
    """Whether the field may be answered beside what `answer` holds already."""
    return all(_holds(condition, answer.get(condition.key)) for condition in field.when)


def _holds(condition: Condition, value: Value | None) -> bool:
    if value is None:
        return False
    among = value if isinstance(value, list) else [value]
    return (condition.value in among) == (condition.op == "eq")
