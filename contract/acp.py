"""Parameters of the ACP requests that the agent serves (ACP v1), as far as it looks at them.

Unknown fields and `_meta` are ignored; `_meta` is never merged into parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from contract.errors import AcpError, Code, invalid_params, not_sent
from contract.limits import CURSOR_CHARS

# Characters of a sentence that quotes what the client sent.
SENTENCE_CHARS: Final = 500


class Params(BaseModel):
    model_config = ConfigDict(defer_build=True, frozen=True, extra="ignore", populate_by_name=True)

    @classmethod
    def refusal(cls, message: str) -> AcpError:
        """The error of parameters that are wrong."""
        return invalid_params(message)


# Any string: an id that no server can have is an unknown session and no bad parameter.
SessionId = Annotated[str, Field(alias="sessionId")]
Cwd = Annotated[str, Field(min_length=1, max_length=4096)]


class NewSession(Params):
    cwd: Cwd
    mcp_servers: Annotated[list[object], Field(alias="mcpServers", default_factory=list)]
    additional: Annotated[list[object], Field(alias="additionalDirectories", default_factory=list)]


class ResumeSession(NewSession):
    session_id: SessionId


class OfSession(Params):
    session_id: SessionId


class ListSessions(Params):
    cwd: Cwd | None = None
    cursor: Annotated[str, Field(min_length=1, max_length=CURSOR_CHARS)] | None = None


class SetMode(OfSession):
    mode_id: Annotated[str, Field(alias="modeId", max_length=256)]


class SetConfigOption(OfSession):
    config_id: Annotated[str, Field(alias="configId", max_length=256)]
    value: str | bool


class TextBlock(Params):
    type: Literal["text"]
    text: str


class MediaBlock(Params):
    type: Literal["image", "audio"]
    data: str
    mime_type: Annotated[str, Field(alias="mimeType", max_length=256)]
    uri: Annotated[str | None, Field(max_length=8192)] = None


class ResourceLink(Params):
    type: Literal["resource_link"]
    uri: Annotated[str, Field(max_length=8192)]
    name: Annotated[str, Field(max_length=8192)] = ""


class EmbeddedResource(Params):
    uri: Annotated[str, Field(max_length=8192)]
    mime_type: Annotated[str | None, Field(alias="mimeType", max_length=256)] = None
    text: str | None = None
    blob: str | None = None


class ResourceBlock(Params):
    type: Literal["resource"]
    resource: EmbeddedResource


Block = Annotated[
    TextBlock | MediaBlock | ResourceLink | ResourceBlock, Field(discriminator="type")
]


class Prompt(OfSession):
    prompt: list[Block]

    @classmethod
    def refusal(cls, message: str) -> AcpError:
        return not_sent(Code.INVALID_PARAMS, "invalid_prompt", message, retry_safe=False)


ParamsT = TypeVar("ParamsT", bound=Params)


def read_params(
    model: type[ParamsT], params: dict[str, object], *, within: Sequence[str] = ()
) -> ParamsT:
    """The parameters as `model`. AcpError -32602 that names the first field that is wrong.

    `within` is the path of `params` in the request when they are not all of it.
    """
    try:
        return model.model_validate(params)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, (*within, *first["loc"]))) or "params"
        sentence = f"Invalid params: {where}: {first['msg']}."
        raise model.refusal(sentence[:SENTENCE_CHARS]) from None
