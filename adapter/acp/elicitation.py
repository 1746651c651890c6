"""Forms of the server as `elicitation/create` in mode `form`, and the answers to it. Pure.

The schema of ACP is flat, so three things of the server are said otherwise: other words beside
options are a second property, a condition is a sentence of the description, and what only a user
interface could keep (a pattern, a format) is left to the client and the server to check.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from adapter.acp.bounded import cut
from adapter.acp.origins import meta_of
from adapter.acp.sensitive import asks_for_credential
from adapter.acp.toolcalls import call_id
from adapter.core.values import FormFate, ShowForm
from contract.forms import (
    AnyField,
    ManyField,
    NumberField,
    Option,
    SwitchField,
    TextField,
    Value,
    fields,
    is_active,
)
from contract.shapes import Form

FIELDS: Final = 64
OPTIONS: Final = 256
# Characters of a value or key, which cut would be another one, and of a text that is only shown.
VALUE_CHARS: Final = 1024
TEXT_CHARS: Final = 2048
# Characters of all that a form shows: a line holds 1 MiB, and one may take six bytes.
FORM_CHARS: Final = 128 * 1024
INT64: Final = 2**63 - 1
# The server keeps numbers as JavaScript does: whole ones are all exact up to here.
EXACT: Final = 2**53
# Characters of one answer.
ANSWER_CHARS: Final = 64 * 1024
OTHER: Final = "_other"

Json = dict[str, object]


def why_not(form: Form) -> FormFate | None:
    """Why the form may not be shown to a client; None for one that may."""
    if asks_for_credential(form):
        return "credential"
    shown = _shown(form)
    if not shown or len(shown) > FIELDS or len({field.key for field in shown}) < len(shown):
        return "unable"
    said = sum(map(_size, shown))
    return None if said <= FORM_CHARS and all(map(_fits, shown)) else "unable"


def request(asked: ShowForm, session_id: str) -> Json:
    """Parameters of `elicitation/create` under the root's id, for a form that may be shown."""
    form, tool, child = asked.form, asked.tool, asked.child
    shown = _shown(form)
    message = _message(form, shown)
    if child is not None:
        message = f"Sub-agent {child}: {message}" if child else f"Sub-agent: {message}"
    params: Json = {
        "mode": "form",
        "sessionId": session_id,
        "message": cut(message, TEXT_CHARS),
        "requestedSchema": _schema(form, shown),
    }
    if tool is not None and child is None:
        params["toolCallId"] = call_id(tool.message_id, tool.call_id)
    return params | meta_of(asked.origin)


def answer(form: Form, result: object) -> tuple[dict[str, Value], FormFate]:
    """The client's result as an answer of the server: {} unless it is a clear `accept`.

    Keys that the form lacks, values of another kind or outside of its bounds, empty texts and
    answers to fields whose condition does not hold are left out.
    """
    content = result.get("content") if isinstance(result, dict) else None
    if not isinstance(result, dict) or result.get("action") != "accept":
        return {}, "declined"
    given = content if isinstance(content, dict) else {}
    shown = _shown(form)
    others = _others(shown)
    told: dict[str, Value] = {}
    for field in shown:
        if not is_active(field, told):
            continue
        value = _value(field, given.get(field.key), given.get(others.get(field.key, "")))
        if value is not None:
            told[field.key] = value
    return told, "answered"


def _shown(form: Form) -> tuple[AnyField, ...]:
    return tuple(field for field in fields(form) or () if not field.hidden)


def _message(form: Form, shown: Sequence[AnyField]) -> str:
    """What is asked, in one text: an MCP server says it, a single question is it."""
    said = (form.metadata or {}).get("message")
    if isinstance(said, str) and said:
        return said
    if len(shown) == 1 and shown[0].description:
        return shown[0].description
    return form.title or "The agent asks for your input."


# --- the schema -------------------------------------------------------------------------------


def _schema(form: Form, shown: Sequence[AnyField]) -> Json:
    properties: Json = {}
    required: list[str] = []
    others = _others(shown)
    labels = {field.key: field.label for field in shown}
    for field in shown:
        said = _said(field, labels)
        properties[field.key] = said | _property(field)
        if field.key in others:
            properties[others[field.key]] = _other(field)
        elif field.required and not field.when:
            required.append(field.key)
    schema: Json = {"type": "object", "properties": properties}
    if form.title:
        schema["title"] = cut(form.title, TEXT_CHARS)
    if required:
        schema["required"] = required
    return schema


def _others(shown: Sequence[AnyField]) -> dict[str, str]:
    """For each field that takes other words beside its options, the property that they go to."""
    taken = {field.key for field in shown}
    names: dict[str, str] = {}
    for field in shown:
        if isinstance(field, TextField | ManyField) and field.custom and field.options:
            name = field.key + OTHER
            while name in taken:
                name += "_"
            taken.add(name)
            names[field.key] = name
    return names


def _other(field: AnyField) -> Json:
    beside = "beside" if isinstance(field, ManyField) else "instead of"
    return {
        "type": "string",
        "title": f"{cut(field.label, TEXT_CHARS)} (other)",
        "description": f"Your own words, {beside} the choices.",
    }


def _said(field: AnyField, labels: Mapping[str, str]) -> Json:
    """Title and description, and under which condition the field counts."""
    hint = field.placeholder if isinstance(field, TextField) else None
    sentences = [field.description or (f"For example: {hint}" if hint else "")]
    for condition in field.when:
        relation = "is" if condition.op == "eq" else "is not"
        label = labels.get(condition.key, condition.key)
        sentences.append(f"Counts only if {label} {relation} {_worded(condition.value)}.")
    description = " ".join(filter(None, sentences))
    said: Json = {"title": cut(field.label, TEXT_CHARS)}
    return said | ({"description": cut(description, TEXT_CHARS)} if description else {})


def _worded(value: str | float | bool) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return cut(str(value), VALUE_CHARS)


def _property(field: AnyField) -> Json:
    match field:
        case TextField(options=()):
            return {"type": "string"} | _known(
                format=field.format,
                minLength=field.min_length,
                maxLength=field.max_length,
                pattern=field.pattern,
                default=field.default,
            )
        case TextField():
            default = field.default if field.default in _values(field.options) else None
            return {"type": "string", "oneOf": _options(field.options)} | _known(default=default)
        case NumberField():
            bounds = _known(minimum=field.minimum, maximum=field.maximum, default=field.default)
            whole = field.type == "integer"
            return {"type": field.type} | (_whole(bounds) if whole else bounds)
        case SwitchField():
            return {"type": "boolean"} | _known(default=field.default)
        case ManyField(options=()):
            return {"type": "string"}
        case ManyField():
            # With other words beside them the choices alone say nothing about the count.
            least, most = (None, None) if field.custom else (field.min_items, field.max_items)
            among = _values(field.options)
            chosen = [value for value in field.default or () if value in among]
            items: Json = {"type": "array", "items": {"anyOf": _options(field.options)}}
            return items | _known(minItems=least, maxItems=most, default=chosen or None)


def _options(options: Sequence[Option]) -> list[Json]:
    """Each value once, with its label."""
    once: dict[str, Option] = {}
    for option in options:
        once.setdefault(option.value, option)
    return [
        {"const": option.value, "title": cut(option.label, TEXT_CHARS)}
        | _known(description=option.description and cut(option.description, TEXT_CHARS))
        for option in once.values()
    ]


def _values(options: Sequence[Option]) -> frozenset[str]:
    return frozenset(option.value for option in options)


def _known(**members: object) -> Json:
    return {name: value for name, value in members.items() if value is not None}


def _whole(bounds: Json) -> Json:
    """The bounds that are integers of 64 bits; the server checks the others."""
    return {
        name: int(value)
        for name, value in bounds.items()
        if isinstance(value, float) and value.is_integer() and abs(value) < INT64
    }


# --- what may be shown ------------------------------------------------------------------------


def _fits(field: AnyField) -> bool:
    """Whether a client can give every answer to the field, with nothing of it cut."""
    exact = [field.key]
    if isinstance(field, TextField):
        exact += [field.default or "", field.pattern or ""]
    if isinstance(field, TextField | ManyField):
        exact += [option.value for option in field.options]
        if len(field.options) > OPTIONS:
            return False
    if isinstance(field, ManyField) and not field.options and not field.custom:
        return False
    return max(map(len, exact)) <= VALUE_CHARS


def _size(field: AnyField) -> int:
    """Characters that the field shows at most."""
    options = field.options if isinstance(field, TextField | ManyField) else ()
    texts = [field.key, field.label, field.description or ""]
    for option in options:
        texts += [option.value, option.label, option.description or ""]
    return sum(min(len(text), TEXT_CHARS) for text in texts)


# --- the answer -------------------------------------------------------------------------------


def _value(field: AnyField, given: object, other: object) -> Value | None:
    """The field's answer in the server's words; None for none, or for one that does not fit."""
    match field:
        case TextField():
            words = other if isinstance(other, str) and other else given
            return words if isinstance(words, str) and _takes(field, words) else None
        case NumberField():
            return _counted(field, given)
        case SwitchField():
            return given if isinstance(given, bool) else None
        case ManyField():
            return _chosen(field, given, other)


def _takes(field: TextField, words: str) -> bool:
    if field.options and not field.custom and words not in _values(field.options):
        return False
    # The server counts as JavaScript does.
    length = len(words.encode("utf-16-le", "surrogatepass")) // 2
    least, most = field.min_length or 0, field.max_length
    most = ANSWER_CHARS if most is None else min(most, ANSWER_CHARS)
    return length > 0 and least <= length <= most


def _counted(field: NumberField, given: object) -> int | float | None:
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    number = _kept(given)
    if number is None or (field.type == "integer" and number != number // 1):
        return None
    low = field.minimum is None or number >= field.minimum
    high = field.maximum is None or number <= field.maximum
    return number if low and high else None


def _kept(given: int | float) -> int | float | None:
    """The number as the server keeps it, in a double; None for one that it would round or refuse.

    A whole number is an integer however it was written, unless it is over 2^53.
    """
    try:
        kept = float(given)
    except OverflowError:
        return None
    if kept != given or not math.isfinite(kept):
        return None
    return int(kept) if kept.is_integer() and abs(kept) <= EXACT else kept


def _chosen(field: ManyField, given: object, other: object) -> list[str] | None:
    if not field.options:
        # Shown as one text.
        given = [given] if isinstance(given, str) and given else None
    listed = given if isinstance(given, list) else []
    among = _values(field.options)
    chosen = [
        value
        for value in dict.fromkeys(value for value in listed if isinstance(value, str) and value)
        if field.custom or value in among
    ]
    if field.custom and isinstance(other, str) and other and other not in chosen:
        chosen.append(other)
    most = field.max_items
    fits = len(chosen) >= (field.min_items or 0) and (most is None or len(chosen) <= most)
    fits = fits and sum(map(len, chosen)) <= ANSWER_CHARS
    return chosen if chosen and fits else None
