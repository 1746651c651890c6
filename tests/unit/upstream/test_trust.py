"""A server with TLS: whose certificate is believed, and from which version on."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from adapter.doctor.examine import examine
from adapter.options import Options
from adapter.settings.faults import faults
from adapter.settings.values import SettingError
from adapter.start import read_start
from adapter.upstream.errors import Unreachable
from adapter.upstream.gasp import last_gasp
from adapter.upstream.transport import ServerSettings, Transport
from adapter.upstream.trust import TrustError, authorities, is_distrust, trusted
from contract import routes
from stubs.waiting import until
from tests.unit.upstream.wire import Wire, WireServer, stay

HTTPS = "https://127.0.0.1:1"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return str(path)


def offering(authority: trustme.CA) -> ssl.SSLContext:
    """What a server on loopback offers whose certificate is signed by this authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


async def answer(wire: Wire) -> None:
    body = b'{"data":{}}'
    head = b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    await wire.write(head % len(body) + body)


async def asked(url: str, ca_file: str | None) -> int:
    """The status of one exchange."""
    transport = Transport(url, None, ServerSettings(attempts=1, ca_file=ca_file))
    try:
        return (await transport.call(routes.INFO)).status
    finally:
        await transport.aclose()


async def test_an_authority_of_the_operators_own_vouches_for_the_server(
    authority: trustme.CA, ca_file: str
) -> None:
    async with WireServer(answer, tls=offering(authority)) as server:
        assert await asked(server.url, ca_file) == 200


async def test_whom_nobody_vouches_for_is_sent_nothing(
    authority: trustme.CA, ca_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does the environment say who does."""
    monkeypatch.setenv("SSL_CERT_FILE", ca_file)
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    async with WireServer(answer, tls=offering(authority)) as server:
        for named in (None, str(other)):
            with pytest.raises(Unreachable, match=r"certificate .* not trusted; ca_file"):
                await asked(server.url, named)
            assert await last_gasp(server.url, None, interrupts=["ses_a"], ca_file=named) == 0
        assert server.requests == []


async def test_no_proxy_stands_between_all_the_same(
    authority: trustme.CA, ca_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with WireServer(answer) as proxy, WireServer(answer, tls=offering(authority)) as server:
        for name in ("https_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert await asked(server.url, ca_file) == 200
        assert proxy.connections == 0


async def test_the_last_writes_go_by_the_same_authorities(
    authority: trustme.CA, ca_file: str
) -> None:
    async with WireServer(stay, tls=offering(authority)) as server:
        wrote = await last_gasp(
            server.url, None, interrupts=["ses_a", "ses_b"], ca_file=ca_file, limit=10
        )
        assert wrote == 2

        async def arrived() -> bool:
            return len(server.requests) == 2

        await until("both requests arrive", arrived)
        missing = f"{ca_file}.gone"
        assert await last_gasp(server.url, None, interrupts=["ses_a"], ca_file=missing) == 0


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_tls_1_2_and_later_are_spoken(
    authority: trustme.CA, ca_file: str, version: ssl.TLSVersion
) -> None:
    offered = offering(authority)
    offered.minimum_version = offered.maximum_version = version
    async with WireServer(answer, tls=offered) as server:
        assert await asked(server.url, ca_file) == 200


async def test_what_is_older_than_tls_1_2_is_refused(
    authority: trustme.CA, ca_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the builds of Python and OpenSSL would take."""
    offered = offering(authority)
    offered.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        offered.maximum_version = ssl.TLSVersion.TLSv1_1
    load = ssl.create_default_context

    def lax(*given: Any, **named: Any) -> ssl.SSLContext:
        context = load(*given, **named)
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        return context

    monkeypatch.setattr(ssl, "create_default_context", lax)
    async with WireServer(answer, tls=offered) as server:
        with pytest.raises(Unreachable):
            await asked(server.url, ca_file)
        assert server.requests == []
    for named in (None, ca_file):
        assert trusted(HTTPS, named).minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("nothing", "No such file"),
        ("a folder", "regular file"),
        ("a pipe", "regular file"),
        ("an empty file", "PEM"),
        ("a text", "PEM"),
        ("a broken certificate", "PEM"),
        ("a key", "PEM"),
    ],
)
def test_a_file_that_names_no_authority_ends_the_start(
    authority: trustme.CA, tmp_path: Path, kind: str, told: str
) -> None:
    path = tmp_path / "ca"
    match kind:
        case "a folder":
            path.mkdir()
        case "a pipe":
            os.mkfifo(path)
        case "an empty file":
            path.write_text("")
        case "a text":
            path.write_text("hush")
        case "a broken certificate":
            path.write_text("-----BEGIN CERTIFICATE-----\nhush\n-----END CERTIFICATE-----\n")
        case "a key":
            authority.private_key_pem.write_to_path(path)
    with pytest.raises(TrustError, match=told):
        authorities(str(path))
    options = Options({"ca_file": str(path)})
    with pytest.raises(SettingError) as caught:
        read_start(options, {})
    sentence = str(caught.value)
    assert all(part in sentence for part in (str(path), told, "--ca-file"))
    assert "hush" not in sentence and "\n" not in sentence
    assert faults(options, {}) == [sentence]


async def test_the_doctor_looks_by_them_and_at_them(
    authority: trustme.CA, ca_file: str, tmp_path: Path
) -> None:
    environ = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}

    async def told(**flags: str) -> dict[str, tuple[str, str]]:
        findings = await examine(Options(flags), environ, str(tmp_path))
        return {one.name: (one.state.value, one.sentence + one.fix) for one in findings}

    async with WireServer(answer, tls=offering(authority)) as server:
        before = await told(server=server.url)
        assert before["auth"][0] == "failed" and "ca_file" in before["auth"][1]
        assert server.requests == []
        await told(server=server.url, ca_file=ca_file)
        assert server.requests != []
    os.chmod(ca_file, 0o666)
    assert "chmod go-w" in (await told(server=HTTPS, ca_file=ca_file))["files"][1]
    assert (await told(server=HTTPS, ca_file=str(tmp_path)))["files"][0] == "failed"


def test_what_led_to_an_error_is_looked_at_once() -> None:
    refused, told = ConnectionError("refused"), RuntimeError("told")
    refused.__context__, told.__cause__ = told, refused
    assert not is_distrust(refused)
    told.__cause__ = ssl.SSLCertVerificationError()
    assert is_distrust(refused)
