"""Where the server may be: on loopback, or where the operator allows it, by https. Pure.

Whoever has the password can do on the server's machine whatever its user can (X-03).
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

from contract.errors import Plain

MAX_NAME: Final = 253
LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
NAME: Final = rf"{LABEL}(?:\.{LABEL})*\.?"
"""A name of a machine, RFC 1123 with underscores; one in other letters stands as `xn--`."""
NUMBER: Final = r"(?:.*\.)?[0-9]+\.?"
"""What ends in a number is an address of IPv4, or nothing."""


class UrlError(Plain, Exception):
    """The server's address is not allowed. `str()` is one sentence."""


class RemoteError(UrlError):
    """It is on another machine, which a setting may allow."""


def server_url(text: str, *, allow_remote: bool = False) -> str:
    """`text` as `scheme://host[:port]`, without a slash at its end.

    Only http and https, no user or password, no path, loopback only; with `allow_remote` also
    https to another host. Raises `UrlError`, and of it `RemoteError` without `allow_remote`.
    """
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UrlError("The server address is not a valid URL.") from error
    if parts.username is not None or parts.password is not None:
        raise UrlError("The server address must not hold a user or password; use a password file.")
    if parts.scheme not in ("http", "https") or not host:
        raise UrlError("The server address must look like http://127.0.0.1:4096.")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise UrlError("The server address must have no path, query or fragment.")
    if not _is_host(host):
        raise UrlError("The server address holds neither the name nor the number of a machine.")
    if not _is_loopback(host):
        if not allow_remote:
            raise RemoteError(
                f"The server address must be on this machine's loopback, and {host} is not."
            )
        if parts.scheme != "https":
            raise UrlError("The server address must begin with https where it is not on loopback.")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port is not None else "")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that `host` is; None for a name. One of IPv4 in IPv6 is that of IPv4."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _is_host(host: str) -> bool:
    """Whether a request can be made to it at all."""
    if _address(host) is not None:
        # One with a zone cannot stand in a URL.
        return "%" not in host
    if len(host) > MAX_NAME or not re.fullmatch(NAME, host) or re.fullmatch(NUMBER, host):
        return False
    try:
        return "xn--" not in host or bool(host.encode("ascii").decode("idna"))
    except UnicodeError:
        return False


def _is_loopback(host: str) -> bool:
    """Of names `localhost` alone: what another one leads to is for others to say."""
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback
