"""What the server demands of a form and of its answer, with its words (2.0.15)."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Any, Final

from stubs.server.wire import Json

KINDS: Final = ("string", "number", "integer", "boolean", "multiselect", "external")


def fault_of_fields(fields: list[Json]) -> str | None:
    """Why a form with these fields is refused; None for a good one."""
    seen: set[str] = set()
    for field in fields:
        key = field["key"]
        if key in seen:
            return f"Duplicate form field key: {key}"
        for condition in field.get("when", ()):
            if condition["key"] not in seen:
                return (
                    "Form field condition must reference an earlier field: "
                    f"{key} -> {condition['key']}"
                )
        seen.add(key)
    return None


def fault_of_answer(fields: list[Json], answer: Json) -> str | None:
    """Why the answer is refused; None for a good one. Defaults count for nothing."""
    keys = {field["key"] for field in fields}
    for key in answer:
        if key not in keys:
            return f"Unknown form field: {key}"
    for field in fields:
        key, value = field["key"], answer.get(field["key"])
        if field["type"] == "external":
            if value is not True:
                return f"External form field must be acknowledged: {key}"
            continue
        active = all(_holds(one, answer.get(one["key"])) for one in field.get("when", ()))
        if field.get("required") and active and value in (None, "", []):
            return f"Missing required form field: {key}"
        if value is None:
            continue
        if not active:
            return f"Form field is not active: {key}"
        fault = _fault(field, value)
        if fault is not None:
            return f"{fault}: {key}"
    return None


def _holds(condition: Json, value: Any) -> bool:
    if value is None:
        return False
    among = value if isinstance(value, list) else [value]
    return bool((condition["value"] in among) == (condition["op"] == "eq"))


def _fault(field: Json, value: Any) -> str | None:
    kind = field["type"]
    if kind == "boolean":
        return None if isinstance(value, bool) else "Expected boolean for form field"
    if kind in ("number", "integer"):
        return _fault_of_number(field, value)
    if kind == "multiselect":
        return _fault_of_many(field, value)
    return _fault_of_text(field, value)


def _fault_of_number(field: Json, value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "Expected number for form field"
    if field["type"] == "integer" and value != math.floor(value):
        return "Expected integer for form field"
    if value < field.get("minimum", -math.inf):
        return "Form field is too small"
    if value > field.get("maximum", math.inf):
        return "Form field is too large"
    return None


def _fault_of_many(field: Json, value: Any) -> str | None:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        return "Expected string array for form field"
    if len(value) < field.get("minItems", 0):
        return "Too few selections for form field"
    if len(value) > field.get("maxItems", math.inf):
        return "Too many selections for form field"
    return None if all(_offered(field, one) for one in value) else "Invalid option for form field"


def _fault_of_text(field: Json, value: Any) -> str | None:
    if not isinstance(value, str):
        return "Expected string for form field"
    length = len(value.encode("utf-16-le", "surrogatepass")) // 2
    if length < field.get("minLength", 0):
        return "Form field is too short"
    if length > field.get("maxLength", math.inf):
        return "Form field is too long"
    if "pattern" in field and not re.search(field["pattern"], value):
        return "Form field does not match pattern"
    if "format" in field and not _has_format(field["format"], value):
        words = {"email": "email", "uri": "URI"}
        return f"Expected {words.get(field['format'], field['format'])} for form field"
    return None if _offered(field, value) else "Invalid option for form field"


def _offered(field: Json, value: str) -> bool:
    options = field.get("options")
    if options is None or field.get("custom"):
        return True
    return value in {option["value"] for option in options}


def _has_format(name: str, value: str) -> bool:
    match name:
        case "email":
            return re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", value) is not None
        case "uri":
            return re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:.", value) is not None
        case _:
            try:
                datetime.fromisoformat(value)
            except ValueError:
                return False
            return name == "date-time" or len(value) == len("2026-01-01")
