"""The alerts and the dashboard: they name what the daemon counts, in what Prometheus can read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import promql_parser
import pytest
import yaml

from adapter.config import Settings
from adapter.daemon.admin.service import Admin
from adapter.daemon.daemon import Daemon, Terms
from adapter.daemon.listening import listen
from adapter.daemon.metrics import Metrics
from adapter.engine.engine import Engine
from stubs.parts import ROOT

MONITORING: Final = ROOT / "deploy" / "monitoring"
RULES: Final = yaml.safe_load((MONITORING / "alerts.yaml").read_text("utf-8"))
ALERTS: Final = [rule for group in RULES["groups"] for rule in group["rules"]]
DASHBOARD: Final = json.loads((MONITORING / "dashboard.json").read_text("utf-8"))
# What Grafana puts in before it asks.
VARIABLES: Final = {"$__rate_interval": "5m", "$instance": ".*"}
SELECTOR: Final = re.compile(r"\b((?:opencode_acp|process)_\w+)(?:\{([^}]*)\})?")
MATCHER: Final = re.compile(r'(\w+)(=~|=)"([^"]*)"')


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DASHBOARD["panels"]
    return found


def expressions() -> Iterator[str]:
    for rule in ALERTS:
        yield rule["expr"]
    for panel in panels():
        for target in panel["targets"]:
            text = target["expr"]
            for name, value in VARIABLES.items():
                text = text.replace(name, value)
            yield text


async def samples(directory: Path) -> dict[str, list[dict[str, str]]]:
    """The labels of every sample that a daemon gives out which has served nobody, by name."""
    metrics = Metrics()
    nowhere = Settings(server="http://127.0.0.1:9")
    async with (
        Engine(nowhere, observer=metrics) as engine,
        Daemon(engine, listen(str(directory / "s")), Terms()) as daemon,
        Admin(daemon, metrics, listen(str(directory / "a"))),
    ):
        found: dict[str, list[dict[str, str]]] = {}
        for metric in metrics.registry.collect():
            # A metric with labels has no sample before the first of its kind.
            names = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}
            for suffix in names.get(metric.type, [""]):
                found.setdefault(metric.name + suffix, [])
            for sample in metric.samples:
                found.setdefault(sample.name, []).append(dict(sample.labels))
        return found


@pytest.mark.parametrize("text", list(expressions()))
def test_prometheus_can_read_it(text: str) -> None:
    promql_parser.parse(text)


def test_what_is_no_expression_is_found() -> None:
    with pytest.raises(ValueError, match=r"."):
        promql_parser.parse("sum by (instance (rate(x[5m]))")


async def test_every_metric_that_is_named_is_counted(tmp_path: Path) -> None:
    """And every value of a label, where all of its values are known from the start."""
    known = await samples(tmp_path)
    named = [match.groups() for text in expressions() for match in SELECTOR.finditer(text)]
    assert {name for name, _ in named} - known.keys() == set()
    for name, matchers in named:
        for label, operator, value in MATCHER.findall(matchers or ""):
            have = {labels[label] for labels in known[name] if label in labels}
            if label == "instance" or not have:
                continue
            assert set(value.split("|") if operator == "=~" else [value]) <= have, name


def test_every_alert_has_its_place_in_the_notes() -> None:
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    anchors = {line.lstrip("# ").lower() for line in page.splitlines() if line.startswith("#")}
    for rule in ALERTS:
        path, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert path == "docs/operations.md"
        assert anchor == rule["alert"].lower()
        assert anchor in anchors
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"].endswith(".")


def test_the_panels_lie_side_by_side() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels()]
    assert len(set(places)) == len(places)
    assert len({panel["id"] for panel in panels()}) == len(places)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels())
