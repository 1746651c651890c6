"""Whether a form asks for a credential, which no form may do (ACP: never in the mode `form`). Pure.

Told by the words of the form's title and of each field's key, title, description and hint, and by
a mark of the server on the field. A form that merely talks of one is taken for one too: it goes
unanswered, which costs less than a password in a chat.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from contract.shapes import Form, JsonObject

# Of a field, beside its key.
SPOKEN: Final = ("title", "description", "placeholder")
MARKS: Final = ("secret", "sensitive", "masked", "writeOnly", "password")
MARKED_FORMATS: Final = frozenset({"password", "secret", "token", "credential"})

# A word's beginning may be anything ("dbPassword", "authtoken"), as long as no other word ends so.
_ENDINGS: Final = (
    "password", "passwd", "passphrase", "passcode", "credential", "secret", "token", "apikey",
    "passwort", "kennwort", "contraseña", "senha", "пароль", "пароля",
)  # fmt: skip
_WHOLE: Final = (
    "pwd", "creds?", "otp", "totp", "cvv", "cvc", "mnemonic", "bearer",
    "(api|access|private|secret|ssh|gpg|pgp|signing|encryption|license|recovery|backup) keys?",
    "(seed|recovery|backup) (phrase|words|code|codes)",
    "(verification|security|login|sign in|one time|two factor|2 ?fa|mfa|auth|authentication"
    "|authorization|authorisation) codes?",
    "mots? de passe", "pin (code|number|nummer)s?",
)  # fmt: skip
_WORDS: Final = re.compile(rf"\b(\w*({'|'.join(_ENDINGS)})s?|{'|'.join(_WHOLE)})\b")
_SIGNS: Final = re.compile("密码|密碼|口令|暗証番号|パスワード|비밀번호")
# "pin" is a verb too: the number is written in capitals, or it is all that is said or the last.
_PIN: Final = re.compile(r"\bPINs?\b")
_PIN_LAST: Final = re.compile(r"(^|\b)pin$")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_GAP: Final = re.compile(r"[\W_]+")


def asks_for_credential(form: Form) -> bool:
    """Whether any field of the form, or its title, speaks of one or is marked as one."""
    message = (form.metadata or {}).get("message")
    told = [form.title, message if isinstance(message, str) else ""]
    return any(map(_speaks, told)) or any(map(_is_sensitive, form.fields))


def _is_sensitive(field: JsonObject) -> bool:
    return (
        any(field.get(mark) not in (None, False) for mark in MARKS)
        or str(field.get("format", "")).lower() in MARKED_FORMATS
        or any(map(_speaks, _texts(field)))
    )


def _texts(field: JsonObject) -> Iterator[str]:
    for name in ("key", *SPOKEN):
        value = field.get(name)
        if isinstance(value, str):
            yield value


def _speaks(text: str) -> bool:
    words = _GAP.sub(" ", _HUMP.sub(" ", text)).strip().lower()
    return bool(
        _WORDS.search(words) or _SIGNS.search(text) or _PIN.search(text) or _PIN_LAST.search(words)
    )
