"""The look at the server before the daemon is ready: a start that cannot work ends with a code.

A server that is down is none of these: the daemon serves, and its feed finds the server later.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Final

from adapter.daemon.refusal import Refusal
from adapter.engine.engine import Engine
from adapter.engine.problems import as_acp_error
from adapter.upstream.errors import Refused, ShapeMismatch, Unauthorised, UpstreamError
from contract.attach import AUTH, CONTRACT
from contract.errors import AcpError

logger = logging.getLogger(__name__)

SECONDS: Final = 2.0
"""A server that has said nothing by then counts as down."""
FIX: Final = "correct it there, then start the daemon again"


async def check(engine: Engine, seconds: float = SECONDS) -> None:
    """Raises Refusal: 3 if the server refuses the password, 4 if it lacks what the adapter needs.

    Returns within `seconds` otherwise, whether the server answers or not (O-01, O-05).
    """
    try:
        async with asyncio.timeout(seconds):
            await engine.check_contract()
            await engine.server.info()
    except AcpError as error:
        raise Refusal(CONTRACT, str(error)) from error
    except Unauthorised as error:
        # Who is told so has no daemon to reload.
        settings = replace(engine.settings, password_fix=FIX)
        raise Refusal(AUTH, str(as_acp_error(error, settings))) from error
    except (UpstreamError, TimeoutError) as error:
        url = engine.server.base_url
        if isinstance(error, ShapeMismatch) or (isinstance(error, Refused) and error.status == 404):
            raise Refusal(CONTRACT, f"At {url} answers something else: {error}") from error
        why = str(error) or "it did not answer in time"
        logger.warning("serving without the server at %s so far: %s", url, why)
