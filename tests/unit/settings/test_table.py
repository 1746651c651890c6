"""What the README says of the settings and limits is what the tables have."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Final

import pytest

from adapter.flags import help_text
from adapter.limits import DEFAULTS
from adapter.settings.table import SETTINGS, Kind, Setting
from stubs.parts import ROOT

ROW: Final = re.compile(r"^\| (`[^|]+) \| ([^|]*) \| (.+) \|$", re.M)
LIMIT: Final = re.compile(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \| ([^|]+) \| [^|]+ \|$", re.M)
EACH: Final = pytest.mark.parametrize("setting", SETTINGS, ids=[one.name for one in SETTINGS])


def page() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def rows() -> dict[str, tuple[str, str]]:
    """By the flag: the variable and the meaning, each as it stands in the table of the README."""
    return {flag: (variable, told) for flag, variable, told in ROW.findall(page())}


def test_the_readme_has_these_settings_and_no_other() -> None:
    flags = [flag.strip("`") for flag in rows() if flag.startswith("`--")]
    assert sorted(flags) == sorted(setting.flag for setting in SETTINGS)


@EACH
def test_the_readme_tells_of_each_its_variable_its_words_and_its_default(setting: Setting) -> None:
    variable, told = rows()[f"`{setting.flag}`"]
    assert variable == f"`{setting.variable}`"
    assert [word for word in setting.words if f"`{word}`" not in told] == []
    if setting.words:
        first = setting.words[0]
        assert re.search(rf"`{first}` \(default\)|default `{first}`", told)
    if setting.default:
        assert re.search(rf"default `?{re.escape(setting.default)}\b", told)
    elif not setting.words:
        # Without a default it is said what holds then.
        assert "unset: " in told or "default" in told or setting.kind is Kind.PATH


@EACH
def test_the_help_tells_the_same(setting: Setting) -> None:
    told = help_text()
    start = told.index(f"  {setting.flag} {setting.metavar}")
    about = told[start:].split("\n")[1]
    assert setting.about in about
    default = setting.default or next(iter(setting.words), "")
    assert (f"(default: {default})" in about) is bool(default)


def test_the_readme_tells_of_each_limit_its_highest_value() -> None:
    told: dict[str, str] = {}
    for names, value in LIMIT.findall(page()):
        split = names.replace("`", "").split(", ")
        # Two limits in one row have their values in the same order.
        told |= dict(zip(split, value.split(", ") if len(split) > 1 else [value], strict=True))
    for one in fields(DEFAULTS):
        highest = f"{getattr(DEFAULTS, one.name):,g}" if one.type == "float" else ""
        highest = highest or f"{getattr(DEFAULTS, one.name):,}"
        assert re.match(rf"{highest}(?![\d,])", told[one.name]), (one.name, told[one.name])
    assert set(told) == {one.name for one in fields(DEFAULTS)}
