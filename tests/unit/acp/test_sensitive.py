"""Which forms ask for a credential."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.acp.sensitive import asks_for_credential
from contract.shapes import Form

CREDENTIALS = (
    "Password", "passwords", "dbPassword", "DB_PASSWORD", "Enter your passphrase", "passcode",
    "secret", "clientSecret", "AWS_SECRET_ACCESS_KEY", "Token", "GitHub token?", "authToken",
    "access-token", "api key", "apiKey", "APIKey", "API_KEY", "OPENAI_API_KEY", "Your API keys",
    "private key", "ssh_key", "Credentials", "PIN", "Enter your PIN.", "card PIN", "pin",
    "user_pin", "pin code", "OTP", "one-time code", "verification code", "2FA code",
    "recovery phrase", "seed phrase", "bearer", "cvv",
    "Passwort", "mot de passe", "contraseña", "密码", "パスワード",
)  # fmt: skip
HARMLESS = (
    "Color", "Which tokenizer?", "Pin the version?", "Should I pin dependencies first?",
    "The secretary's name", "key", "Which keyboard?", "Primary key column", "Spinner", "opinion",
    "Mapping", "keys", "Branch to compare", "Postal code", "Country code", "passenger", "",
    "compass", "Language of the code",
)  # fmt: skip


def form(**members: Any) -> Form:
    field = {"key": "q0", "type": "string"} | members
    return Form.model_validate({"id": "frm_1", "sessionID": "ses_1", "fields": [field]})


@pytest.mark.parametrize("words", CREDENTIALS)
@pytest.mark.parametrize("where", ["key", "title", "description", "placeholder"])
def test_a_field_that_speaks_of_a_credential_is_one(words: str, where: str) -> None:
    assert asks_for_credential(form(**{where: words}))


@pytest.mark.parametrize("words", HARMLESS)
@pytest.mark.parametrize("where", ["key", "title", "description"])
def test_other_words_are_not(words: str, where: str) -> None:
    assert not asks_for_credential(form(**{where: words}))


@pytest.mark.parametrize("kind", ["string", "integer", "multiselect", "boolean", "external", "new"])
def test_whatever_the_kind_of_the_field(kind: str) -> None:
    assert asks_for_credential(form(type=kind, title="Password"))


@pytest.mark.parametrize("mark", [{"secret": True}, {"format": "password"}, {"sensitive": 1}])
def test_a_mark_of_the_server_counts_without_words(mark: dict[str, Any]) -> None:
    assert asks_for_credential(form(**mark))
    assert not asks_for_credential(form(**dict.fromkeys(mark, None)))


def test_so_do_the_title_of_the_form_and_the_message_of_an_mcp_server() -> None:
    plain = form()
    assert asks_for_credential(plain.model_copy(update={"title": "Your API key, please"}))
    message = {"kind": "mcp-elicitation", "message": "Enter the password of bob"}
    assert asks_for_credential(plain.model_copy(update={"metadata": message}))


@pytest.mark.parametrize("odd", [3, None, ["password"], {"a": 1}])
def test_a_text_of_another_kind_is_no_text(odd: object) -> None:
    assert not asks_for_credential(form(title=odd, description=odd))
