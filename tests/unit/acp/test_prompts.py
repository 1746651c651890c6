"""An ACP prompt as the server takes it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from adapter.acp.overlimit import OverLimit
from adapter.acp.prompts import PromptContent, Slash, content
from adapter.limits import DEFAULTS, Bound, Limits
from adapter.upstream.client import Server
from contract import limits
from contract.acp import Prompt, read_params
from contract.errors import AcpError, Code
from stubs.server import StubServer

PNG = base64.b64encode(b"\x89PNG").decode()


def read(*blocks: dict[str, Any], within: Limits = DEFAULTS) -> PromptContent:
    params: dict[str, Any] = {"sessionId": "ses_1", "prompt": list(blocks)}
    return content(read_params(Prompt, params).prompt, within)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def image(data: str = PNG, mime: str = "image/png", **more: Any) -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": mime, **more}


def link(uri: str, name: str = "") -> dict[str, Any]:
    return {"type": "resource_link", "uri": uri, "name": name}


def embedded(uri: str = "file:///srv/a.txt", **resource: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, **resource}}


REASONS = {Code.INVALID_PARAMS: "invalid_prompt", Code.LIMIT: "too_large"}


def refused(*blocks: dict[str, Any], within: Limits = DEFAULTS) -> AcpError:
    """The error, whose data says that nothing was sent (docs/outcomes.md)."""
    with pytest.raises(AcpError) as caught:
        read(*blocks, within=within)
    assert caught.value.data == {
        "code": REASONS[Code(caught.value.code)],
        "admitted": False,
        "messageId": None,
        "retrySafe": False,
        "gaps": 0,
        "shared": False,
    }
    return caught.value


def data_of(prompt: PromptContent) -> tuple[str, bytes]:
    """Media type and bytes of the one attachment."""
    (file,) = prompt.files
    head, _, body = file["uri"].partition(",")
    assert head.startswith("data:")
    assert head.endswith(";base64")
    return head.removeprefix("data:").removesuffix(";base64"), base64.b64decode(body)


# Texts


@pytest.mark.parametrize("words", ["hi", " a\tb ", "line\r\n\u2028é😀", "@@text 1@@", "/command x"])
def test_text_passes_unchanged(words: str) -> None:
    read_back = read(text(words))
    assert (read_back.text, read_back.files, read_back.skills) == (words, (), ())


def test_texts_are_lines() -> None:
    assert read(text("a"), text(""), text("b")).text == "a\n\nb"


@pytest.mark.parametrize("blocks", [[], [text("")], [text(" \n\t")], [text(""), text(" ")]])
def test_an_empty_prompt_is_refused(blocks: list[dict[str, Any]]) -> None:
    error = refused(*blocks)
    assert (error.code, error.message) == (Code.INVALID_PARAMS, "The prompt is empty.")


def test_audio_is_refused() -> None:
    error = refused(text("x"), {"type": "audio", "data": PNG, "mimeType": "audio/wav"})
    assert error.code == Code.INVALID_PARAMS
    assert "audio" in error.message


# Links


@pytest.mark.parametrize(
    ("uri", "name", "shown"),
    [
        ("file:///srv/a%20b.txt", "", "a b.txt"),
        ("file:///srv/with space.txt", "", "with space.txt"),
        ("file:///srv/a.txt", "mine", "mine"),
        ("FILE:///srv/a.txt", "", "a.txt"),
        ("file:///srv/dir/", "", None),
        ("file://", "", None),
        ("file:///srv/a.txt?start=1&end=2", "", "a.txt"),
    ],
)
def test_a_file_link_is_an_attachment_and_is_named_where_it_stands(
    uri: str, name: str, shown: str | None
) -> None:
    expected = {"uri": uri} if shown is None else {"uri": uri, "name": shown}
    words = f"[{shown or uri}]({uri})"
    assert read(link(uri, name)) == PromptContent(words, (expected,))
    around = read(text("Explain"), link(uri, name), text("please"))
    assert around == PromptContent(f"Explain\n{words}\nplease", (expected,))


@pytest.mark.parametrize(
    ("uri", "name", "words"),
    [
        ("https://example.com/a", "a page", "[a page](https://example.com/a)"),
        ("https://example.com/a", "", "[https://example.com/a](https://example.com/a)"),
        ("zed://agent/thread/1", "t", "[t](zed://agent/thread/1)"),
        ("no uri at all", "n", "[n](no uri at all)"),
        ("http://[broken", "n", "[n](http://[broken)"),
        ("file://[broken", "", "[file://[broken](file://[broken)"),
    ],
)
def test_any_other_link_is_told_in_words(uri: str, name: str, words: str) -> None:
    assert read(link(uri, name)) == PromptContent(words)


# Images


@pytest.mark.parametrize(
    "mime", ["image/png", "IMAGE/PNG", " image/png ", "image/png; charset=x,y", "image/png;q"]
)
def test_an_image_is_a_data_uri_of_its_bare_type(mime: str) -> None:
    assert data_of(read(image(mime=mime))) == ("image/png", b"\x89PNG")


def test_an_image_with_a_type_of_its_own_keeps_it() -> None:
    assert data_of(read(image(mime="image/svg+xml")))[0] == "image/svg+xml"


@pytest.mark.parametrize(
    ("uri", "named"),
    [(None, None), ("", None), ("file:///srv/shot.png", "shot.png"), ("http://[x/y", "y"),
     ("clipboard", "clipboard"), ("/x/" + "n" * 999, "n" * 255)],
)  # fmt: skip
def test_an_image_is_named_by_its_uri(uri: str | None, named: str | None) -> None:
    (file,) = read(image(uri=uri)).files
    assert file.get("name") == named


@pytest.mark.parametrize(
    "mime", ["", "image", "image/", "/png", "application/x-thing", "text/html", "image/png,x", "\n"]
)
def test_an_image_must_say_that_it_is_one(mime: str) -> None:
    error = refused(image(mime=mime))
    assert (error.code, "image" in error.message) == (Code.INVALID_PARAMS, True)


@pytest.mark.parametrize(
    "data", ["A", "AA", "AAA", "AAAA=", "AAAA====", "=AAA", "AA\nAA", "AA AA", "AA-_", "é", "a,bc"]
)
def test_bad_base64_is_refused(data: str) -> None:
    error = refused(image(data))
    assert error.code == Code.INVALID_PARAMS
    assert error.message == "prompt.0.data is not valid base64."


def test_an_empty_image_is_still_one() -> None:
    assert data_of(read(image("")))[1] == b""


# Embedded resources


@pytest.mark.parametrize("words", ["", "hello", "é\u2028😀\x00", "\r\n"])
def test_embedded_text_is_an_attachment_of_text(words: str) -> None:
    prompt = read(embedded(text=words, mimeType="text/x-python"))
    assert data_of(prompt) == ("text/plain", words.encode())
    assert prompt.files[0]["name"] == "a.txt"


def test_embedded_text_with_lone_surrogates_is_sent_all_the_same() -> None:
    assert data_of(read(embedded(text="a\ud800b"))) == ("text/plain", b"a?b")


@pytest.mark.parametrize("kind", ["application/pdf", "text/csv", "image/png", "application/json"])
def test_a_blob_that_the_model_can_be_shown_is_an_attachment(kind: str) -> None:
    assert data_of(read(embedded(blob=PNG, mimeType=kind))) == (kind, b"\x89PNG")


@pytest.mark.parametrize("kind", [None, "", "application/zip", "garbage", "x/y,z"])
def test_a_blob_that_would_be_dropped_is_told_in_words(kind: str | None) -> None:
    prompt = read(embedded("file:///srv/a%20b.zip", blob=PNG, mimeType=kind))
    assert prompt.files == ()
    assert prompt.text.startswith("[a b.zip: ")
    assert prompt.text.endswith(", 4 bytes, content left out]")


def test_text_and_blob_are_both_missing() -> None:
    assert refused(embedded()).code == Code.INVALID_PARAMS


@pytest.mark.parametrize(
    ("block", "path"),
    [
        (image("A"), "prompt.1.data"),
        (image(mime="text/html"), "prompt.1.mimeType"),
        (embedded(), "prompt.1.resource"),
        (embedded(blob="A"), "prompt.1.resource.blob"),
        ({"type": "audio", "data": PNG, "mimeType": "audio/wav"}, "prompt.1"),
    ],
)
def test_a_refusal_says_where_the_fault_stands(block: dict[str, Any], path: str) -> None:
    assert refused(text("x"), block).message.startswith(f"{path} ")


# Limits: at the bound all is well, one past it nothing is sent.


SHORT = Limits(prompt_chars=10)
SMALL = Limits(attachment_bytes=8)


def over(within: Limits, *blocks: dict[str, Any]) -> Bound | None:
    """The limit that the prompt is refused for."""
    error = refused(*blocks, within=within)
    return error.bound if isinstance(error, OverLimit) else None


def test_characters_of_text() -> None:
    assert len(read(text("é" * 4), text("y" * 5), within=SHORT).text) == 10
    assert over(SHORT, text("x" * 5), text("y" * 5)) is Bound.PROMPT_CHARS
    assert over(SHORT, link("https://example.com/")) is Bound.PROMPT_CHARS


def test_bytes_of_attachments() -> None:
    assert len(read(image(), embedded(text="éé"), within=SMALL).files) == 2
    assert over(SMALL, image(), embedded(text="ééx")) is Bound.ATTACHMENT_BYTES
    # What is left out counts too.
    left_out = [embedded(blob=PNG, mimeType="a/b")] * 3
    assert over(SMALL, *left_out) is Bound.ATTACHMENT_BYTES


def test_blocks() -> None:
    assert read(*[text("x")] * limits.PROMPT_BLOCKS).text.count("x") == limits.PROMPT_BLOCKS
    error = refused(*[text("x")] * (limits.PROMPT_BLOCKS + 1))
    assert error.code == Code.LIMIT
    assert "Nothing was sent" in error.message


async def test_the_server_takes_every_kind_of_attachment(tmp_path: Path) -> None:
    path = tmp_path / "with space.txt"
    path.write_text("inside")
    prompt = read(
        text("look"), image(), link(path.as_uri()), embedded(text="é"), embedded(blob=PNG)
    )
    async with StubServer() as stub, Server(stub.url) as server:
        session = await server.create_session(str(tmp_path))
        await server.posts.prompt(session.id, "msg_1", prompt.text, prompt.files, resume=False)
        (item,) = stub.host.store.sessions[session.id].inbox.values()
    stored = [(file["mime"], base64.b64decode(file["data"])) for file in item.payload["files"]]
    assert stored == [
        ("image/png", b"\x89PNG"),
        ("text/plain", b"inside"),
        ("text/plain", "é".encode()),
    ]


def test_a_document_that_the_server_could_not_take_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adapter.acp.prompts.DOCUMENT_BYTES", 3)
    data = base64.b64encode(b"1234").decode()
    for block in (
        {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "1234"}},
        {
            "type": "resource",
            "resource": {"uri": "file:///a.pdf", "blob": data, "mimeType": "application/pdf"},
        },
    ):
        with pytest.raises(AcpError) as refused:
            content(read_params(Prompt, {"sessionId": "s", "prompt": [block]}).prompt)
        assert refused.value.code == Code.LIMIT
    image = {"type": "image", "data": data, "mimeType": "image/png"}
    assert content(read_params(Prompt, {"sessionId": "s", "prompt": [image]}).prompt).files


@pytest.mark.parametrize(
    ("words", "name", "rest"),
    [
        ("/hi", "hi", ""),
        ("/hi there  you", "hi", "there  you"),
        ("/hi\nthere", "hi", "there"),
        ("/a:b-c/d x", "a:b-c/d", "x"),
    ],
)
def test_a_name_behind_a_slash_is_told_from_what_follows_it(
    words: str, name: str, rest: str
) -> None:
    assert read(text(words)).slash == Slash(name, rest)


@pytest.mark.parametrize("words", ["hi", " /hi", "/", "/ hi", "x /hi", "/" + "n" * 129])
def test_no_name_stands_behind_a_slash(words: str) -> None:
    assert read(text(words)).slash is None


def test_the_first_text_block_may_call_and_the_other_blocks_go_along() -> None:
    prompt = read(image(), text("/hi there"), text("and here"))
    assert prompt.slash == Slash("hi", "there\nand here")
    assert len(prompt.files) == 1


def test_a_later_text_block_calls_nothing() -> None:
    assert read(text("look"), text("/hi there")).slash is None
