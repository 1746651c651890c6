"""An ACP prompt as the server takes it: one text and a list of attachments.

User text passes unchanged. Attachments are named by URI: the server resolves `file:` and `data:`
at the POST and refuses any other scheme. It silently drops a binary of a type that it does not
know (OpenCode facts, section 1), so such a block becomes a line of text that says what it was,
and a link is named in the text as well: only the server can see what its file holds. Of an image
or a PDF that a model cannot take, the server tells the model.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from adapter.acp.overlimit import OverLimit
from adapter.limits import DEFAULTS, Bound, Limits
from contract.acp import (
    Block,
    EmbeddedResource,
    MediaBlock,
    Prompt,
    ResourceBlock,
    ResourceLink,
    TextBlock,
)
from contract.errors import AcpError, Code, not_sent
from contract.limits import DOCUMENT_BYTES, PROMPT_BLOCKS
from contract.words import counted

# Media types that reach the model, or of which it is told that it cannot read them.
PASSED_TYPES: Final = ("text/", "image/", "application/pdf", "application/json")
# A media type without its parameters (RFC 6838, section 4.2), which is safe in a data URI.
_MEDIA: Final = re.compile(r"\s*([a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*)\s*(;|$)")
_NAME_CHARS: Final = 255
_SLASH: Final = re.compile(r"/(\S{1,128})(?:\s+|\Z)")


@dataclass(frozen=True, slots=True)
class Slash:
    """What the first text block begins with: `/name`, and the text that follows it.

    `text` is that of all blocks, without the name and the white space after it.
    """

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class PromptContent:
    """`files` are `{uri, name}` of the server's prompt route, `skills` ids of the directory's."""

    text: str
    files: tuple[dict[str, str], ...] = ()
    skills: tuple[str, ...] = ()
    slash: Slash | None = None


def content(blocks: Sequence[Block], limits: Limits = DEFAULTS) -> PromptContent:
    """The prompt for the server.

    Raises AcpError -32602 for an empty prompt, audio, an image that is none or bad base64, and
    -32053 for one over the limits. Nothing was dispatched then.
    """
    if len(blocks) > PROMPT_BLOCKS:
        raise _over(f"a prompt may hold {PROMPT_BLOCKS} blocks")
    texts: list[str] = []
    files: list[dict[str, str]] = []
    size = 0
    first: int | None = None
    for at, block in enumerate(blocks):
        where = f"prompt.{at}"
        match block:
            case TextBlock():
                first = len(texts) if first is None else first
                texts.append(block.text)
            case ResourceLink():
                _link(block, texts, files)
            case MediaBlock(type="audio"):
                raise Prompt.refusal(
                    f"{where} is audio, which is not supported; send text or images."
                )
            case MediaBlock():
                kind = _media_type(block.mime_type)
                if not kind.startswith("image/"):
                    raise Prompt.refusal(f"{where}.mimeType of an image must be image/....")
                size += _decoded(block.data, f"{where}.data")
                files.append(_file(_data_uri(kind, block.data), _name(block.uri)))
            case ResourceBlock():
                size += _embedded(block.resource, f"{where}.resource", texts, files)
    text = "\n".join(texts)
    if not text.strip() and not files:
        raise Prompt.refusal("The prompt is empty.")
    if len(text) > limits.prompt_chars:
        what = f"the text of a prompt may hold {counted(limits.prompt_chars, 'character')}"
        raise OverLimit(Bound.PROMPT_CHARS, _over(what))
    if size > limits.attachment_bytes:
        what = f"the attachments of a prompt may hold {counted(limits.attachment_bytes, 'byte')}"
        raise OverLimit(Bound.ATTACHMENT_BYTES, _over(what))
    return PromptContent(text, tuple(files), slash=_slash(texts, first))


def _slash(texts: Sequence[str], first: int | None) -> Slash | None:
    found = None if first is None else _SLASH.match(texts[first])
    if first is None or found is None:
        return None
    rest = [*texts[:first], texts[first][found.end() :], *texts[first + 1 :]]
    return Slash(found.group(1), "\n".join(text for text in rest if text))


def _link(block: ResourceLink, texts: list[str], files: list[dict[str, str]]) -> None:
    name = block.name
    if _split(block.uri).scheme == "file":
        name = name or _name(block.uri)
        files.append(_file(block.uri, name))
    texts.append(f"[{name or block.uri}]({block.uri})")


def _embedded(
    resource: EmbeddedResource, where: str, texts: list[str], files: list[dict[str, str]]
) -> int:
    name = _name(resource.uri)
    if resource.text is not None:
        data = resource.text.encode("utf-8", "replace")
        _check_document(len(data))
        files.append(_file(_data_uri("text/plain", base64.b64encode(data).decode()), name))
        return len(data)
    if resource.blob is None:
        raise Prompt.refusal(f"{where} needs text or blob.")
    kind = _media_type(resource.mime_type or "") or "application/octet-stream"
    size = _decoded(resource.blob, f"{where}.blob")
    if kind.startswith(PASSED_TYPES):
        if not kind.startswith("image/"):
            _check_document(size)
        files.append(_file(_data_uri(kind, resource.blob), name))
    else:
        texts.append(f"[{name or resource.uri}: {kind}, {counted(size, 'byte')}, content left out]")
    return size


def _check_document(size: int) -> None:
    if size > DOCUMENT_BYTES:
        raise _over(f"one attachment that is no image may hold {DOCUMENT_BYTES} bytes")


def _decoded(data: str, where: str) -> int:
    """Bytes of base64 text. AcpError -32602 for anything else; `where` is its path."""
    try:
        size = len(binascii.a2b_base64(data, strict_mode=True))
    except ValueError:
        size = -1
    # The strict mode of Python 3.11 lets signs of padding after whole groups pass.
    if size < 0 or len(data) != (size + 2) // 3 * 4:
        raise Prompt.refusal(f"{where} is not valid base64.")
    return size


def _media_type(given: str) -> str:
    """The type and subtype in small letters; empty for what is no media type."""
    found = _MEDIA.match(given.lower())
    return found.group(1) if found else ""


def _data_uri(media_type: str, data: str) -> str:
    return f"data:{media_type};base64,{data}"


def _file(uri: str, name: str) -> dict[str, str]:
    return {"uri": uri, "name": name[:_NAME_CHARS]} if name else {"uri": uri}


def _name(uri: str | None) -> str:
    return posixpath.basename(unquote(_split(uri or "").path))


def _split(uri: str) -> SplitResult:
    """The parts of a URI; all of one that is not valid is its path."""
    try:
        return urlsplit(uri)
    except ValueError:
        return SplitResult("", "", uri, "", "")


def _over(what: str) -> AcpError:
    message = f"The prompt is too large: {what}. Nothing was sent."
    return not_sent(Code.LIMIT, "too_large", message, retry_safe=False)
