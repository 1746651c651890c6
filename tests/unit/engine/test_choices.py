"""Model, effort and mode: what is offered, what is current, and what a set means."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.acp import jsonrpc
from adapter.engine.choices import Choices, SetAgent, SetModel
from adapter.upstream.catalogue import Catalogue
from contract.errors import AcpError, Code
from contract.reads import Agent, Model, Variant
from contract.shapes import ModelRef
from tests.support.oracle import Oracle

EFFORTS = (Variant(id="low"), Variant(id="high"))
ONE = Model(id="one", provider_id="fake", name="One", variants=EFFORTS)
TWO = Model(id="two", provider_id="fake", variants=(Variant(id="high"), Variant(id="max")))
PLAIN = Model(id="plain", provider_id="other")
OFF = Model(id="off", provider_id="fake", enabled=False)
BUILD = Agent(id="build", name="Build", description="Works.")
PLAN = Agent(id="plan")
AGENTS = (
    Agent(id="general", mode="subagent"),
    BUILD,
    PLAN,
    Agent(id="title", hidden=True),
    Agent(id="all", mode="all"),
)


def ref(model: Model, variant: str | None = None) -> ModelRef:
    return ModelRef(id=model.id, provider_id=model.provider_id, variant=variant)


def made(
    agent: str | None = None,
    model: ModelRef | None = None,
    models: tuple[Model, ...] = (ONE, TWO, PLAIN, OFF),
    agents: tuple[Agent, ...] = AGENTS,
    default: Model | None = ONE,
) -> Choices:
    return Choices(Catalogue(agents, models, default), agent, model)


def shown(choices: Choices) -> dict[str, Any]:
    """Of each option the current value and all values."""
    options: list[Any] = choices.options()
    return {
        option["id"]: (option["currentValue"], [each["value"] for each in option["options"]])
        for option in options
    }


def refused(choices: Choices, config: str, value: str | bool) -> AcpError:
    with pytest.raises(AcpError) as caught:
        choices.change(config, value)
    assert caught.value.code == Code.INVALID_PARAMS
    return caught.value


# What is shown


def test_a_session_without_a_choice_shows_what_the_server_would_use() -> None:
    assert shown(made()) == {
        "model": ("fake/one", ["fake/one", "fake/two", "other/plain"]),
        "effort": ("default", ["default", "low", "high"]),
        "mode": ("build", ["build", "plan", "all"]),
    }


def test_the_agent_that_is_listed_first_is_the_mode_whatever_its_name() -> None:
    choices = made(agents=(Agent(id="title", hidden=True), PLAN, BUILD))
    assert shown(choices)["mode"] == ("plan", ["plan", "build"])
    assert choices.change_mode("build") == SetAgent("build")


def test_a_server_without_models_and_agents_offers_nothing() -> None:
    choices = made(models=(), agents=(), default=None)
    assert (choices.options(), choices.modes()) == ([], None)


def test_a_model_that_is_gone_from_the_catalogue_is_still_shown() -> None:
    gone = Model(id="gone", provider_id="fake")
    assert shown(made(model=ref(gone)))["model"][0] == "fake/gone"
    assert "effort" not in shown(made(model=ref(gone)))
    kept = shown(made(model=ref(gone, "high")))
    assert kept["model"][1][-1] == "fake/gone"
    assert kept["effort"] == ("high", ["default", "high"])


def test_an_effort_that_the_model_no_longer_has_is_still_shown() -> None:
    assert shown(made(model=ref(ONE, "max")))["effort"] == (
        "max",
        ["default", "low", "high", "max"],
    )


@pytest.mark.parametrize("model", [ONE, PLAIN])
def test_the_variant_default_of_the_server_is_no_choice(model: Model) -> None:
    # The server writes it where none was chosen (recordings).
    assert shown(made(model=ref(model, "default"))) == shown(made(model=ref(model)))


def test_a_variant_that_is_called_default_is_not_listed_twice() -> None:
    odd = Model(id="odd", provider_id="fake", variants=(Variant(id="default"), *EFFORTS))
    assert shown(made(models=(odd,), default=odd))["effort"][1] == ["default", "low", "high"]


@pytest.mark.parametrize("agent", ["general", "title", "vanished"])
def test_an_agent_that_cannot_be_chosen_is_shown_while_it_is_current(agent: str) -> None:
    choices = made(agent=agent)
    assert shown(choices)["mode"] == (agent, ["build", "plan", "all", agent])
    modes: Any = choices.modes()
    assert modes["currentModeId"] == agent
    assert modes["availableModes"][-1] == {"id": agent, "name": agent}


def test_modes_name_and_describe_the_agents() -> None:
    modes: Any = made().modes()
    assert modes["currentModeId"] == "build"
    assert modes["availableModes"][:2] == [
        {"id": "build", "name": "Build", "description": "Works."},
        {"id": "plan", "name": "plan"},
    ]


@pytest.mark.parametrize(
    "choices",
    [made(), made("plan", ref(TWO, "max")), made(models=(), agents=(), default=None)],
    ids=["defaults", "chosen", "empty"],
)
def test_the_answer_is_valid_acp(choices: Choices) -> None:
    oracle = Oracle()
    oracle.sent({"jsonrpc": "2.0", "id": 1, "method": "session/new"})
    result: dict[str, object] = {"sessionId": "ses_1", "configOptions": choices.options()}
    modes = choices.modes()
    oracle.received(jsonrpc.success(1, result if modes is None else {**result, "modes": modes}))
    assert oracle.faults == []


# What a set means


@pytest.mark.parametrize(
    ("config", "value"),
    [("model", "fake/one"), ("effort", "low"), ("mode", "plan"), ("timeout", "30"),
     ("timeout", True)],
)  # fmt: skip
def test_what_is_current_already_changes_nothing(config: str, value: str | bool) -> None:
    assert made("plan", ref(ONE, "low")).change(config, value) is None


@pytest.mark.parametrize("variant", [None, "default"])
def test_the_default_effort_is_current_where_none_was_chosen(variant: str | None) -> None:
    assert made(model=ref(ONE, variant)).change("effort", "default") is None


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        (None, "fake/two", ref(TWO)),
        (ref(ONE, "high"), "fake/two", ref(TWO, "high")),
        (ref(ONE, "low"), "fake/two", ref(TWO)),
        (ref(ONE, "low"), "other/plain", ref(PLAIN)),
        (ref(ONE, "default"), "fake/two", ref(TWO)),
        (ref(Model(id="gone", provider_id="x"), "max"), "fake/two", ref(TWO, "max")),
    ],
)
def test_a_new_model_keeps_the_effort_that_it_has_too(
    before: ModelRef | None, key: str, after: ModelRef
) -> None:
    assert made(model=before).change("model", key) == SetModel(after)


@pytest.mark.parametrize(
    ("before", "effort", "after"),
    [
        (None, "high", ref(ONE, "high")),
        (ref(ONE, "high"), "default", ref(ONE)),
        (ref(ONE, "gone"), "low", ref(ONE, "low")),
        (ref(TWO), "max", ref(TWO, "max")),
    ],
)
def test_an_effort_is_a_variant_of_the_current_model(
    before: ModelRef | None, effort: str, after: ModelRef
) -> None:
    assert made(model=before).change("effort", effort) == SetModel(after)


@pytest.mark.parametrize("agent", ["plan", "all"])
def test_a_mode_is_an_agent(agent: str) -> None:
    assert made().change("mode", agent) == SetAgent(agent)
    assert made().change_mode(agent) == SetAgent(agent)


@pytest.mark.parametrize(
    ("config", "value"),
    [
        ("model", "fake/three"),
        ("model", "fake/off"),
        ("model", "one"),
        ("model", ""),
        ("model", True),
        ("effort", "max"),
        ("effort", "Default"),
        ("effort", False),
        ("mode", "general"),
        ("mode", "title"),
        ("mode", True),
        ("mode", "x" * 5000),
        ("thinking", "high"),
        ("", ""),
    ],
)
def test_unknown_options_and_values_are_refused(config: str, value: str | bool) -> None:
    error = refused(made(), config, value)
    assert error.message.startswith("Unknown ")
    assert len(error.message) < 400


@pytest.mark.parametrize("config", ["model", "effort", "mode"])
def test_a_server_that_offers_nothing_takes_no_choice(config: str) -> None:
    refused(made(models=(), agents=(), default=None), config, "x")
