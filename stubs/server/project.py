"""What a directory's opencode.json says: agents, models, commands, permission rules."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any, Final

from stubs.server import definitions
from stubs.server.wire import Json

RULES: Final[tuple[tuple[str, str, str], ...]] = (
    ("*", "*", "allow"),
    ("external_directory", "*", "ask"),
    ("read", "*.env", "ask"),
    ("read", "*.env.*", "ask"),
    ("read", "*.env.example", "allow"),
)
PACKAGE: Final = "@opencode/ai/providers/openai-compatible"
EFFORTS: Final = ("low", "medium", "high")
KEY: Final = "stub-secret-key"


class Project:
    """The configuration of one directory, read when it is made. A broken file counts as empty,
    and one that is not `configured` is not looked at."""

    def __init__(self, directory: str, *, configured: bool = True) -> None:
        self.directory = directory
        self._config = _read(os.path.join(directory, "opencode.json")) if configured else {}
        self.models: list[Json] = list(self._models())
        agents = list(self._agents())
        self.default_agent = _default(agents, self._config.get("default_agent"))
        """The agent of a session that has selected none; it is listed first."""
        self.agents: list[Json] = sorted(agents, key=lambda one: one["id"] != self.default_agent)

    def agent(self, name: str) -> Json | None:
        """The agent of that id, or None."""
        return next((agent for agent in self.agents if agent["id"] == name), None)

    def model(self, ref: Json) -> Json | None:
        """The model that a reference {id, providerID} names, or None."""
        for model in self.models:
            if model["id"] == ref.get("id") and model["providerID"] == ref.get("providerID"):
                return model
        return None

    @property
    def default_model(self) -> Json:
        """The configured default model, else the first."""
        wanted = str(self._config.get("model", ""))
        for model in self.models:
            if f"{model['providerID']}/{model['id']}" == wanted:
                return model
        return self.models[0]

    @property
    def rules(self) -> list[Json]:
        """The permission rules of every agent, defaults first; the last match counts."""
        return [{"action": a, "resource": r, "effect": e} for a, r, e in RULES] + [
            *_rules(self._config.get("permission")),
            *_rules(self._config.get("permissions")),
        ]

    @property
    def commands(self) -> list[Json]:
        """Commands as listed: name and description."""
        built_in = [
            {"name": "init", "description": "guided AGENTS.md setup"},
            {
                "name": "review",
                "description": "review changes [commit|branch|pr], defaults to uncommitted",
            },
        ]
        own = [
            {"name": name, **_pick(command, "description")} for name, command in self._commands()
        ]
        return built_in + own

    def command(self, name: str) -> Json | None:
        """The definition of a command, its template included; None for no such command."""
        for own, command in self._commands():
            if own == name:
                return command
        if any(command["name"] == name for command in self.commands):
            return {"template": f"{name} $ARGUMENTS"}
        return None

    @property
    def skills(self) -> list[Json]:
        """Skills as listed, with what their files say."""
        return list(definitions.skills(self.directory))

    def _commands(self) -> Iterable[tuple[str, Json]]:
        yield from self._table("commands", "command")
        yield from definitions.commands(self.directory)

    @property
    def providers(self) -> list[Json]:
        """Providers as listed, credentials in clear text as the server shows them."""
        found: dict[str, Json] = {}
        for model in self.models:
            provider = model["providerID"]
            found[provider] = {
                "id": provider,
                "name": provider.title(),
                "activation": "enabled",
                "package": PACKAGE,
                "settings": model["settings"],
            }
        return list(found.values())

    def _table(self, *keys: str) -> Iterable[tuple[str, Json]]:
        for key in keys:
            table = self._config.get(key)
            if isinstance(table, dict):
                for name, value in table.items():
                    if isinstance(value, dict):
                        yield name, value

    def _agents(self) -> Iterable[Json]:
        rules = self.rules
        for name, mode, hidden, description in (
            ("build", "primary", False, "The default agent."),
            ("general", "subagent", False, "General-purpose agent."),
            ("compaction", "primary", True, None),
            ("title", "primary", True, None),
            ("plan", "primary", False, "Read-only agent."),
        ):
            about = {} if description is None else {"description": description}
            own = {"mode": mode, "hidden": hidden, **about}
            yield _agent(name, name.title(), own, rules)
        for name, config in self._table("agents", "agent"):
            more = [*_rules(config.get("permission")), *_rules(config.get("permissions"))]
            own = {"mode": "all", "hidden": False}
            own |= _pick(config, "mode", "hidden", "description", "steps")
            yield _agent(name, name, own, [*rules, *more])

    def _models(self) -> Iterable[Json]:
        found = False
        for provider, config in self._table("providers", "provider"):
            for name, model in (config.get("models") or {}).items():
                found = True
                yield _model(provider, name, model if isinstance(model, dict) else {})
        if not found:
            cost = [{"input": 1, "output": 2}]
            yield _model("fake", "fake-1", {"name": "Fake 1", "cost": cost})
            two = {"name": "Fake 2", "variants": [{"id": "low"}, {"id": "high"}]}
            yield _model("fake", "fake-2", {**two, "limit": {"context": 50000, "output": 4000}})


def _default(agents: list[Json], wanted: Any) -> str:
    """The agent that the configuration wants, if a session could select it."""
    for agent in agents:
        if agent["id"] == wanted and agent["mode"] != "subagent" and not agent["hidden"]:
            return str(wanted)
    return "build"


def _agent(name: str, title: str, own: Json, rules: list[Json]) -> Json:
    request: Json = {"settings": {}, "headers": {}, "body": {}}
    return {"id": name, "name": title, "request": request, **own, "permissions": rules}


def _model(provider: str, name: str, config: Json) -> Json:
    capabilities = {"tools": True, "input": ["text", "image"], "output": ["text"]}
    efforts = [{"id": effort, "settings": {"reasoningEffort": effort}} for effort in EFFORTS]
    cost = [{"cache": {"read": 0, "write": 0}, **tier} for tier in config.get("cost", [])]
    return {
        "id": name,
        "modelID": name,
        "providerID": provider,
        "name": config.get("name", name),
        "package": PACKAGE,
        "settings": {"apiKey": KEY, "baseURL": "http://127.0.0.1:9/v1"},
        "capabilities": config.get("capabilities", capabilities),
        "variants": config.get("variants", efforts),
        "time": {"released": 0},
        "cost": cost,
        "status": "active",
        "enabled": True,
        "limit": config.get("limit", {"context": 100000, "output": 8000}),
    }


def _rules(config: Any) -> list[Json]:
    """Rules from a list of them, or from {action: effect | {pattern: effect}}."""
    if isinstance(config, list):
        return [rule for rule in config if isinstance(rule, dict)]
    rules: list[Json] = []
    for action, value in (config if isinstance(config, dict) else {}).items():
        table = value if isinstance(value, dict) else {"*": value}
        for pattern, effect in table.items():
            rules.append({"action": action, "resource": pattern, "effect": effect})
    return rules


def _pick(source: Json, *keys: str) -> Json:
    return {key: source[key] for key in keys if key in source}


def _read(path: str) -> Json:
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
