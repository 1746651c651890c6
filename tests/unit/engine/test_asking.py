"""What a client is asked: a fault of ours in it is told, and nothing of what the user said."""

from __future__ import annotations

import asyncio

import pytest

from adapter.acp import elicitation
from adapter.acp.capabilities import Capabilities
from adapter.core import values as v
from adapter.engine.asking import Asking
from adapter.engine.client import Attachment
from adapter.upstream.client import Server
from contract.shapes import Form
from tests.unit.engine.rig import Told
from tests.unit.engine.test_hub import Listener

URL = "http://127.0.0.1:1"
FORM = Form.model_validate(
    {"id": "frm_1", "sessionID": "ses_a", "fields": [{"key": "name", "type": "string"}]}
)


def attachment() -> Attachment:
    listener = Listener({"action": "accept", "content": {"name": "my own words"}})
    listener.can = Capabilities(forms=True)
    return Attachment(1, listener)


async def done(asking: Asking) -> None:
    await asyncio.wait(frozenset(asking.tasks))


async def test_a_step_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def step(given: v.Input) -> None:
        raise RuntimeError("an output could not be performed")

    asking = Asking(Told().services(Server(URL)), "ses_a", "/p", step)
    asking.show_form(v.ShowForm(1, FORM, None), attachment())
    await done(asking)
    (record,) = caplog.records
    assert record.getMessage() == "ask frm_1 failed"
    assert "my own words" not in caplog.text


async def test_an_answer_that_cannot_be_read_is_none_and_is_not_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(form: Form, result: object) -> None:
        raise ValueError(f"no sense in {result}")

    monkeypatch.setattr(elicitation, "answer", fails)
    told = Told()
    asking = Asking(told.services(Server(URL)), "ses_a", "/p", told.step)
    asking.show_form(v.ShowForm(1, FORM, None), attachment())
    await done(asking)
    assert told.steps == [v.FormAnswered("frm_1", fate="declined")]
    assert "frm_1" in caplog.text
    assert "my own words" not in caplog.text
