"""Parameters of ACP requests: what is read, and what is said of those that are wrong."""

from __future__ import annotations

from typing import Any

import pytest

from contract.acp import (
    NewSession,
    OfSession,
    Params,
    Prompt,
    ResumeSession,
    SetConfigOption,
    SetMode,
    read_params,
)
from contract.errors import AcpError, Code


def refused(model: type[Params], params: dict[str, Any]) -> AcpError:
    with pytest.raises(AcpError) as caught:
        read_params(model, params)
    assert caught.value.code == Code.INVALID_PARAMS
    return caught.value


def test_unknown_fields_and_meta_are_ignored() -> None:
    params: dict[str, Any] = {
        "cwd": "/srv",
        "mcpServers": [],
        "_meta": {"cwd": "/etc"},
        "sessionId": "ses_x",
    }
    read = read_params(NewSession, params)
    assert (read.cwd, read.mcp_servers, read.additional) == ("/srv", [], [])


def test_mcp_servers_may_be_left_out_of_a_resume() -> None:
    read = read_params(ResumeSession, {"sessionId": "ses_1", "cwd": "/srv"})
    assert (read.session_id, read.mcp_servers) == ("ses_1", [])


@pytest.mark.parametrize(
    ("model", "params", "field"),
    [
        (NewSession, {}, "cwd"),
        (NewSession, {"cwd": ""}, "cwd"),
        (NewSession, {"cwd": 5}, "cwd"),
        (NewSession, {"cwd": "/" + "x" * 4096}, "cwd"),
        (NewSession, {"cwd": "/srv", "mcpServers": {}}, "mcpServers"),
        (NewSession, {"cwd": "/srv", "additionalDirectories": None}, "additionalDirectories"),
        (OfSession, {}, "sessionId"),
        (OfSession, {"sessionId": 1}, "sessionId"),
        (OfSession, {"sessionId": None}, "sessionId"),
        (SetMode, {"sessionId": "ses_1"}, "modeId"),
        (SetMode, {"sessionId": "ses_1", "modeId": "x" * 257}, "modeId"),
        (SetConfigOption, {"sessionId": "ses_1", "configId": "model"}, "value"),
        (SetConfigOption, {"sessionId": "ses_1", "configId": "m", "value": 1.5}, "value"),
        (Prompt, {"sessionId": "ses_1"}, "prompt"),
        (Prompt, {"sessionId": "ses_1", "prompt": "hi"}, "prompt"),
        (Prompt, {"sessionId": "ses_1", "prompt": [{}]}, "prompt.0"),
        (Prompt, {"sessionId": "ses_1", "prompt": [{"type": "text"}]}, "prompt.0.text.text"),
        (Prompt, {"sessionId": "ses_1", "prompt": [None]}, "prompt.0"),
    ],
)
def test_the_first_wrong_field_is_named(
    model: type[Params], params: dict[str, Any], field: str
) -> None:
    assert refused(model, params).message.startswith(f"Invalid params: {field}")


@pytest.mark.parametrize("value", ["high", True, False])
def test_a_choice_is_a_string_or_a_boolean(value: str | bool) -> None:
    params: dict[str, Any] = {"sessionId": "ses_1", "configId": "effort", "value": value}
    assert read_params(SetConfigOption, params).value is value


@pytest.mark.parametrize("session_id", ["", "x", "ses_" + "x" * 100_000, "Session not found"])
def test_an_odd_session_id_is_no_bad_parameter(session_id: str) -> None:
    # acpx takes -32602 in a resume as "the session is gone".
    assert read_params(OfSession, {"sessionId": session_id}).session_id == session_id


def test_the_value_is_not_quoted_and_the_sentence_is_bounded() -> None:
    secret = "s3cret" * 100
    error = refused(Prompt, {"sessionId": "ses_1", "prompt": [{"type": "text", "text": [secret]}]})
    assert "s3cret" not in error.message
    assert len(refused(Prompt, {"sessionId": "s", "prompt": [{"type": "x" * 10**6}]}).message) < 600


def test_no_message_says_what_acpx_takes_as_gone() -> None:
    kind = "resource_not_found unknown session not found"
    error = refused(Prompt, {"sessionId": "ses_1", "prompt": [{"type": kind}]})
    assert "not found" not in error.message
    assert "unknown session" not in error.message
    assert "resource_not_found" not in error.message
