"""Model, effort and mode of a session as ACP config options and modes (pure).

A choice that nobody made is not invented: a session without a choice shows the server's default
model and the first primary agent, which are what the server itself would use: it lists the agent
that its configuration names as the default before all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from adapter.engine.slash import available
from adapter.upstream.catalogue import Catalogue
from contract.errors import AcpError, invalid_params
from contract.reads import Agent, Model
from contract.shapes import ModelRef

Json = dict[str, object]

MODEL: Final = "model"
EFFORT: Final = "effort"
MODE: Final = "mode"
# acpx sets this one when it is told a timeout; it has no meaning here and is accepted.
TIMEOUT: Final = "timeout"
NO_EFFORT: Final = "default"


@dataclass(frozen=True, slots=True)
class SetModel:
    model: ModelRef


@dataclass(frozen=True, slots=True)
class SetAgent:
    agent: str


Change = SetModel | SetAgent | None


@dataclass(frozen=True, slots=True)
class Choices:
    """What can be chosen and what is chosen; None where the server said nothing."""

    catalogue: Catalogue
    agent: str | None
    model: ModelRef | None

    @property
    def agents(self) -> list[Agent]:
        """Agents that a session can be switched to (OpenCode facts, section 9)."""
        return [
            agent
            for agent in self.catalogue.agents
            if agent.mode != "subagent" and not agent.hidden
        ]

    @property
    def models(self) -> list[Model]:
        return [model for model in self.catalogue.models if model.enabled]

    @property
    def current_model(self) -> ModelRef | None:
        if self.model is not None:
            return _without_default(self.model)
        default = self.catalogue.default
        return ModelRef(id=default.id, provider_id=default.provider_id) if default else None

    @property
    def current_mode(self) -> str | None:
        if self.agent is not None:
            return self.agent
        return next((agent.id for agent in self.agents), None)

    def options(self) -> list[Json]:
        """The whole list of `configOptions`; an option without a value is left out."""
        found = [self._model_option(), self._effort_option(), self._mode_option()]
        return [option for option in found if option is not None]

    def modes(self) -> Json | None:
        """`modes` of session/new and session/resume, in step with the mode option."""
        current = self.current_mode
        if current is None:
            return None
        listed = [_mode(agent) for agent in self.agents]
        if all(mode["id"] != current for mode in listed):
            listed.append({"id": current, "name": current})
        return {"currentModeId": current, "availableModes": listed}

    def commands(self) -> list[Json]:
        """The whole list of `availableCommands`."""
        return available(self.catalogue)

    def change(self, config_id: str, value: str | bool) -> Change:
        """What a set means for the server; None when it is the current choice already.

        Raises AcpError -32602 for an unknown option or value.
        """
        if config_id == TIMEOUT:
            return None
        text = value if isinstance(value, str) else ""
        match config_id:
            case "model":
                return self._change_model(text)
            case "effort":
                return self._change_effort(text)
            case "mode":
                return self.change_mode(text)
            case _:
                raise invalid_params(f"Unknown config option: {config_id}.")

    def change_mode(self, mode_id: str) -> Change:
        if mode_id == self.current_mode:
            return None
        if mode_id not in [agent.id for agent in self.agents]:
            raise _unknown("mode", mode_id)
        return SetAgent(mode_id)

    def _change_model(self, key: str) -> Change:
        current = self.current_model
        if current is not None and current.key == key:
            return None
        model = next((model for model in self.models if model.key == key), None)
        if model is None:
            raise _unknown("model", key)
        kept = current.variant if current else None
        variant = kept if kept in [one.id for one in model.variants] else None
        return SetModel(ModelRef(id=model.id, provider_id=model.provider_id, variant=variant))

    def _change_effort(self, effort: str) -> Change:
        current = self.current_model
        if current is None:
            raise _unknown("effort", effort)
        wanted = None if effort == NO_EFFORT else effort
        if wanted == current.variant:
            return None
        if wanted is not None and wanted not in self._efforts(current):
            raise _unknown("effort", effort)
        return SetModel(ModelRef(id=current.id, provider_id=current.provider_id, variant=wanted))

    def _efforts(self, current: ModelRef) -> list[str]:
        model = next((model for model in self.catalogue.models if model.key == current.key), None)
        listed = [one.id for one in model.variants if one.id != NO_EFFORT] if model else []
        if current.variant is not None and current.variant not in listed:
            listed.append(current.variant)
        return listed

    def _model_option(self) -> Json | None:
        current = self.current_model
        if current is None:
            return None
        values = [(model.key, model.name or model.key) for model in self.models]
        return _select(MODEL, "Model", "model", current.key, values)

    def _effort_option(self) -> Json | None:
        current = self.current_model
        efforts = self._efforts(current) if current is not None else []
        if current is None or not efforts:
            return None
        values = [(NO_EFFORT, "Default"), *((effort, effort.capitalize()) for effort in efforts)]
        return _select(EFFORT, "Effort", "thought_level", current.variant or NO_EFFORT, values)

    def _mode_option(self) -> Json | None:
        current = self.current_mode
        if current is None:
            return None
        values = [(agent.id, agent.name or agent.id) for agent in self.agents]
        return _select(MODE, "Mode", "mode", current, values)


def _select(
    ident: str, name: str, category: str, current: str, values: list[tuple[str, str]]
) -> Json:
    """A select option; the current value is always among its values."""
    if all(value != current for value, _ in values):
        values = [*values, (current, current)]
    return {
        "type": "select",
        "id": ident,
        "name": name,
        "category": category,
        "currentValue": current,
        "options": [{"value": value, "name": label} for value, label in values],
    }


def _without_default(model: ModelRef) -> ModelRef:
    """The server writes the variant `default` where none was chosen."""
    if model.variant != NO_EFFORT:
        return model
    return ModelRef(id=model.id, provider_id=model.provider_id)


def _mode(agent: Agent) -> Json:
    mode: Json = {"id": agent.id, "name": agent.name or agent.id}
    if agent.description:
        mode["description"] = agent.description
    return mode


def _unknown(what: str, value: str) -> AcpError:
    return invalid_params(f"Unknown {what}: {value[:200]}. The config options list the known ones.")
