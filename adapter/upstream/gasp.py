"""The last word on leaving: interrupts, withdrawals and removals whose answers nobody waits for.

The server carries out an interrupt whose socket is closed at once (OpenCode facts, later
experiments 14), so that an adapter whose client left is gone within `LIMIT` seconds.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlencode, urlsplit

from adapter.upstream.credentials import Credential
from adapter.upstream.decode import clean
from adapter.upstream.trust import TrustError, trusted
from contract.routes import INBOX_DELETE, INTERRUPT, MCP_REMOVE, Route, url

# Seconds for all writes together.
LIMIT: Final = 0.2
# At most this many writes; the rest is left to run.
MAX_WRITES: Final = 256


async def last_gasp(
    base_url: str,
    credential: Credential | None,
    *,
    interrupts: Iterable[str] = (),
    withdrawals: Iterable[tuple[str, str]] = (),
    removals: Iterable[tuple[str, str]] = (),
    ca_file: str | None = None,
    limit: float = LIMIT,
) -> int:
    """Writes one request a session to interrupt, and one a (session, message) to withdraw, and
    one a (directory, MCP server) to remove; what has to stop goes first.

    Returns how many were written whole; nothing is known of their effect. Raises `ValueError`
    for an id outside the grammar and nothing else.
    """
    targets = [(INTERRUPT, url(INTERRUPT, sessionID=session)) for session in interrupts]
    targets += [
        (INBOX_DELETE, url(INBOX_DELETE, sessionID=session, inboxID=message))
        for session, message in withdrawals
    ]
    targets += [
        (MCP_REMOVE, f"{url(MCP_REMOVE, server=name)}?{_location(directory)}")
        for directory, name in removals
    ]
    requests = [_request(base_url, credential, route, target) for route, target in targets]
    if not requests:
        return 0
    try:
        # The same for all: public authorities take 30 ms to load.
        context = trusted(base_url, ca_file) if base_url.startswith("https:") else None
    except TrustError:
        return 0
    writes = [
        asyncio.create_task(_write(base_url, data, context)) for data in requests[:MAX_WRITES]
    ]
    try:
        await asyncio.wait(writes, timeout=limit)
    finally:
        for write in writes:
            write.cancel()
    results = await asyncio.gather(*writes, return_exceptions=True)
    return sum(1 for result in results if result is None)


def _location(directory: str) -> str:
    return urlencode({"location[directory]": clean(directory)})


def _request(base_url: str, credential: Credential | None, route: Route, target: str) -> bytes:
    head = [
        f"{route.method} {target} HTTP/1.1",
        f"Host: {urlsplit(base_url).netloc}",
        "Content-Length: 0",
        "Connection: close",
    ]
    if credential is not None:
        head.append(f"Authorization: {credential.header()}")
    return ("\r\n".join(head) + "\r\n\r\n").encode("ascii")


async def _write(base_url: str, data: bytes, context: ssl.SSLContext | None) -> None:
    parts = urlsplit(base_url)
    _, writer = await asyncio.open_connection(
        parts.hostname,
        parts.port or (443 if context else 80),
        ssl=context,
    )
    try:
        writer.write(data)
        await writer.drain()
    finally:
        writer.close()
    # A loop may keep small writes until it turns; a closed transport has written them.
    await writer.wait_closed()
