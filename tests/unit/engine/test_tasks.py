"""Tasks with an owner: none is forgotten, and a fault in one is told."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import pytest

from adapter.engine.tasks import Tasks
from tests.support.structure import modules


async def fault() -> None:
    raise RuntimeError("a fault of ours")


async def test_a_fault_is_logged_with_its_trace(caplog: pytest.LogCaptureFixture) -> None:
    tasks = Tasks()
    task = tasks.start(fault(), "the work")
    await asyncio.wait({task})
    assert len(tasks) == 0
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("ERROR", "the work failed")
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "a fault of ours"


async def test_closing_waits_for_the_end_of_each(caplog: pytest.LogCaptureFixture) -> None:
    tasks = Tasks()
    ended: list[int] = []

    async def work(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(number)

    for number in range(3):
        tasks.start(work(number), f"work {number}")
    await asyncio.sleep(0)
    assert len(tasks) == len(list(tasks)) == 3
    await tasks.aclose()
    assert sorted(ended) == [0, 1, 2]
    assert len(tasks) == 0
    assert caplog.records == []


async def test_closing_nothing_is_fine() -> None:
    await Tasks().aclose()


ENGINE = [path for name, path in modules("adapter").items() if name.startswith("adapter.engine")]


@pytest.mark.parametrize("path", ENGINE, ids=lambda path: path.stem)
def test_every_task_of_the_engine_has_somebody_who_looks_at_its_fault(path: Path) -> None:
    """Each `create_task` stands in a function that also sees to the task's end."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        source = ast.unparse(node)
        assert "ensure_future" not in source
        if "create_task" in source:
            assert "add_done_callback" in source or "await " in source, node.name
