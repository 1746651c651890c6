"""One HTTP exchange with the server: bounded, classified, and retried where that is safe."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from enum import Enum
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx
from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from adapter.upstream.acceptance import REFUSED, Acceptance
from adapter.upstream.credentials import Credential
from adapter.upstream.decode import DecodeError, clean, decode, encode
from adapter.upstream.errors import (
    Ambiguous,
    Refused,
    SessionMissing,
    ShapeMismatch,
    TooLarge,
    Unauthorised,
    Unreachable,
    UpstreamError,
)
from adapter.upstream.trust import is_distrust, trusted
from contract.routes import EVENT, OF_TURNS, Route, url
from contract.semantics import USER

Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]
Requested = Callable[[str, int, float], None]
"""Hears of each exchange: the route's name, the status or 0 without an answer, and seconds."""

# Text of the server that is passed on in an error is cut to this many characters.
MAX_MESSAGE: Final = 500


@dataclass(frozen=True)
class ServerSettings:
    """Times in seconds, `max_answer` in bytes.

    `connections` are those of each of the two pools. `keepalive` stays below the 5 s after which
    the server closes an idle connection (facts, section 8; workaround "idle connections of 4 s").
    `deadline` bounds a call with all its retries; a prompt has `prompt_deadline` and no retry, and
    a slash command `command_deadline`, since the server answers it only after the shell commands of
    its template.
    """

    connect: float = 5.0
    read: float = 30.0
    write: float = 30.0
    pool: float = 10.0
    connections: int = 64
    keepalive: float = 4.0
    max_answer: int = 128 * 1024 * 1024
    attempts: int = 4
    deadline: float = 15.0
    prompt_deadline: float = 60.0
    command_deadline: float = 600.0
    ca_file: str | None = None
    """Authorities of the operator's own (`adapter.upstream.trust`)."""


def unheard(route: str, status: int, seconds: float) -> None:
    """For a transport whose exchanges nobody counts."""


class Retry(Enum):
    """After which failures a request may be sent again."""

    NEVER = ()
    UNSENT = (Unreachable,)
    ALWAYS = (Unreachable, Ambiguous)


@dataclass(frozen=True)
class Answer:
    """A whole response; `body` is not decoded."""

    status: int
    media: str
    body: bytes

    def json(self) -> object:
        """The decoded body. Raises `ShapeMismatch`."""
        if self.media == "text/html":
            raise ShapeMismatch("The server address answers with a web page, not with the API.")
        try:
            return decode(self.body)
        except DecodeError:
            # Without the cause, which would carry the body.
            raise ShapeMismatch("The OpenCode server answered with invalid JSON.") from None


class _Exchange:
    """One request under way, which is told of once."""

    def __init__(self, route: str, clock: Clock, requested: Requested) -> None:
        self._route = route
        self._clock = clock
        self._requested = requested
        self._began = clock()
        self._is_told = False

    def answered(self, status: int) -> None:
        """`status` 0 for an end without an answer; only the first call counts."""
        if not self._is_told:
            self._is_told = True
            self._requested(self._route, status, self._clock() - self._began)


class Transport:
    """The connections to one server, in two pools. Close it with `aclose`.

    What a turn waits for has connections of its own: all the others may be at requests that the
    server does not answer.
    """

    def __init__(
        self,
        base_url: str,
        credential: Credential | None,
        settings: ServerSettings,
        *,
        sleep: Sleep = asyncio.sleep,
        clock: Clock = time.monotonic,
        requested: Requested = unheard,
        acceptance: Acceptance | None = None,
    ) -> None:
        self.base_url = base_url
        self.credential = credential
        self.settings = settings
        self._sleep = sleep
        self._clock = clock
        self._requested = requested
        self._acceptance = acceptance or Acceptance()
        context = trusted(base_url, settings.ca_file)
        self._turns = self._pool(context)
        self._others = self._pool(context)

    def authenticate(self, credential: Credential | None) -> None:
        """Every request from now on proves itself by this; those under way have the old one."""
        self.credential = credential

    def _pool(self, context: ssl.SSLContext) -> httpx.AsyncClient:
        settings = self.settings
        return httpx.AsyncClient(
            base_url=self.base_url,
            verify=context,
            trust_env=False,
            follow_redirects=False,
            # None is taken: each would be kept for ever, and sent along.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            headers={"accept-encoding": "identity", "user-agent": "opencode-acp"},
            timeout=httpx.Timeout(
                connect=settings.connect,
                read=settings.read,
                write=settings.write,
                pool=settings.pool,
            ),
            limits=httpx.Limits(
                max_connections=settings.connections,
                max_keepalive_connections=settings.connections,
                keepalive_expiry=settings.keepalive,
            ),
        )

    def _pool_of(self, route: Route) -> httpx.AsyncClient:
        return self._turns if route in OF_TURNS else self._others

    async def aclose(self) -> None:
        await self._turns.aclose()
        await self._others.aclose()

    async def call(
        self,
        route: Route,
        ids: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        retry: Retry = Retry.ALWAYS,
        deadline: float | None = None,
        silence: float | None = None,
        accept: tuple[int, ...] = (),
    ) -> Answer:
        """The answer if its status is 2xx, or in `accept` with an error body of the API.

        `silence` is the longest wait for a byte in place of the setting `read`, in seconds.

        Every other answer is raised as its error; a 404 without a body is a missing route.

        Raises `ValueError` for an id outside the grammar, before anything is sent.
        """
        path = url(route, **(ids or {}))
        seconds = self.settings.deadline if deadline is None else deadline
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(retry.value),
            stop=stop_after_attempt(self.settings.attempts),
            wait=wait_exponential(multiplier=0.05, max=1.0) + wait_random(0, 0.05),
            sleep=self._sleep,
            reraise=True,
        )
        late = Ambiguous(f"The OpenCode server did not answer within {seconds:g} s.")
        last: UpstreamError = late
        sent: Ambiguous | None = None
        try:
            async with asyncio.timeout(seconds):
                async for attempt in retrying:
                    with attempt:
                        last = late
                        # There may be another one when the answer comes.
                        credential = self.credential
                        sending = self._send(
                            route, path, query, body, silence=silence, auth=_auth(credential)
                        )
                        try:
                            answer = await self._exchange(route, credential, sending)
                            session_id = (ids or {}).get("sessionID", "")
                            return _classified(answer, accept, session_id, credential)
                        except Unreachable as error:
                            # An earlier attempt that was sent outweighs this one that was not.
                            last = sent or error
                            raise last from None
                        except Ambiguous as error:
                            last = sent = error
                            raise
        except TimeoutError:
            pass
        raise last

    @asynccontextmanager
    async def stream(self, *, silence: float) -> AsyncIterator[httpx.Response]:
        """The feed's response; `silence` is the longest wait for a byte, in seconds."""
        credential = self.credential
        with self._timed(EVENT, credential) as exchange:
            opening = self._pool_of(EVENT).stream(
                EVENT.method,
                EVENT.path,
                auth=_auth(credential),
                headers={"accept": "text/event-stream", "cache-control": "no-store"},
                timeout=httpx.Timeout(self.settings.connect, read=silence),
            )
            async with opening as response:
                exchange.answered(response.status_code)
                yield response

    @contextmanager
    def _timed(self, route: Route, credential: Credential | None) -> Iterator[_Exchange]:
        """An exchange counts when its answer is there, or else at its end."""

        def answered(name: str, status: int, seconds: float) -> None:
            self._requested(name, status, seconds)
            if credential is self.credential:
                self._acceptance.answered(status)

        exchange = _Exchange(route.name, self._clock, answered)
        try:
            yield exchange
        finally:
            exchange.answered(0)

    async def _exchange(
        self, route: Route, credential: Credential | None, sending: Awaitable[Answer]
    ) -> Answer:
        with self._timed(route, credential) as exchange:
            answer = await sending
            exchange.answered(answer.status)
            return answer

    async def _send(
        self,
        route: Route,
        path: str,
        query: Mapping[str, str] | None,
        body: object,
        *,
        silence: float | None,
        auth: httpx.Auth,
    ) -> Answer:
        content = None if body is None else encode(body)
        headers = {} if content is None else {"content-type": "application/json"}
        params = {key: clean(value) for key, value in query.items()} if query else None
        pool = self._pool_of(route)
        timeout = pool.timeout
        if silence is not None:
            timeout = httpx.Timeout(
                connect=timeout.connect, read=silence, write=timeout.write, pool=timeout.pool
            )
        try:
            async with pool.stream(
                route.method,
                path,
                params=params,
                content=content,
                headers=headers,
                auth=auth,
                timeout=timeout,
            ) as response:
                chunks: list[bytes] = []
                size = 0
                async for chunk in response.aiter_bytes():
                    size += len(chunk)
                    if size > self.settings.max_answer:
                        raise TooLarge("An answer of the OpenCode server is too large to be read.")
                    chunks.append(chunk)
                media = response.headers.get("content-type", "").partition(";")[0].strip()
                return Answer(response.status_code, media.lower(), b"".join(chunks))
        except (httpx.RequestError, httpx.StreamError) as error:
            raise translated(error) from error


def _auth(credential: Credential | None) -> httpx.Auth:
    # The base class adds nothing to a request.
    return httpx.Auth() if credential is None else httpx.BasicAuth(USER, credential.password)


def translated(error: httpx.RequestError | httpx.StreamError) -> UpstreamError:
    """An error of httpx as ours, by whether the request can have had an effect."""
    name = type(error).__name__
    match error:
        case httpx.PoolTimeout():
            return Unreachable("All connections to the OpenCode server are in use.")
        case httpx.ConnectError() if is_distrust(error):
            return Unreachable(
                "The certificate of the OpenCode server is not trusted; ca_file names the "
                "authorities that vouch for it."
            )
        case httpx.ConnectError() | httpx.ConnectTimeout():
            return Unreachable("The OpenCode server cannot be reached.")
        case httpx.DecodingError():
            return ShapeMismatch("The OpenCode server answered in an unknown encoding.")
        case httpx.TimeoutException():
            return Ambiguous(f"The OpenCode server did not answer in time ({name}).")
        case _:
            return Ambiguous(f"The connection to the OpenCode server broke ({name}).")


def _classified(
    answer: Answer, accept: tuple[int, ...], session_id: str, credential: Credential | None
) -> Answer:
    status = answer.status
    if 200 <= status < 300:
        return answer
    if status in REFUSED:
        raise Unauthorised("The OpenCode server refused the password.")
    tag, message = _complaint(answer, credential)
    if status == 404 and tag == "SessionNotFoundError":
        raise SessionMissing(session_id)
    if status in accept and tag is not None:
        return answer
    if status >= 500:
        raise Ambiguous(f"The OpenCode server failed ({status}): {message}", status)
    if status < 400:
        raise ShapeMismatch(f"The OpenCode server answered with status {status}.")
    raise Refused(status, tag, message)


def _complaint(answer: Answer, credential: Credential | None) -> tuple[str | None, str]:
    """`_tag` and `message` of an error body, of which many are empty (facts, section 8).

    The message may quote the request, as proxies do, and is freed from the password.
    """
    try:
        body = decode(answer.body)
    except DecodeError:
        body = None
    if not isinstance(body, dict):
        return None, "no reason given"
    tag, message = body.get("_tag"), body.get("message")
    if not isinstance(message, str):
        message = "no reason given"
    elif credential is not None:
        message = credential.hidden_in(message)
    return tag if isinstance(tag, str) else None, message[:MAX_MESSAGE]
