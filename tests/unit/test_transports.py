"""The scenarios that are left out of the third transport are there, and each has its reason."""

from __future__ import annotations

import ast

from stubs.parts import ROOT
from tests.scenarios.in_process import IN_PROCESS


def test_every_scenario_that_is_left_out_exists_and_has_a_reason() -> None:
    folder = ROOT / "tests" / "scenarios"
    for (file, name), reason in IN_PROCESS.items():
        tree = ast.parse((folder / file).read_text(encoding="utf-8"))
        tests = {node.name for node in tree.body if isinstance(node, ast.AsyncFunctionDef)}
        assert name in tests
        assert reason
