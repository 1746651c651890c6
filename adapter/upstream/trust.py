"""Whose certificates a server with TLS is believed by: the public authorities', or the operator's.

Nothing of the environment counts, as with proxies (X-02): `SSL_CERT_FILE` is not looked at.
"""

from __future__ import annotations

import os
import ssl
import stat

from contract.errors import Plain


class TrustError(Plain, Exception):
    """A file of authorities cannot be used. `str()` is a part of a sentence: why not."""


def trusted(base_url: str, ca_file: str | None = None) -> ssl.SSLContext:
    """What connections to this server are made with.

    The authorities of `ca_file` are believed in place of the public ones. For a server without TLS
    none are loaded. Raises TrustError for a file that cannot be used.
    """
    if not base_url.startswith("https:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca_file:
        context = authorities(ca_file)
    else:
        import httpx

        context = httpx.create_ssl_context(trust_env=False)
    # Said here, since a build of Python or OpenSSL may say less; more is left.
    context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_2)
    return context


def authorities(path: str) -> ssl.SSLContext:
    """A context that believes those of the PEM file at `path` and no other. Raises TrustError."""
    try:
        # Opening a FIFO would wait for a writer.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise TrustError("it is not a regular file")
        return ssl.create_default_context(cafile=path)
    except ssl.SSLError:
        raise TrustError("it holds no certificates in PEM form") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no valid path"
        raise TrustError(f"it cannot be read ({reason})") from None


def is_distrust(error: BaseException) -> bool:
    """Whether this error, or what led to it, is a certificate that nobody vouches for."""
    met: list[BaseException] = []
    led: BaseException | None = error
    # One that is raised again may be what led to it.
    while led is not None and led not in met:
        if isinstance(led, ssl.SSLCertVerificationError):
            return True
        met.append(led)
        led = led.__cause__ or led.__context__
    return False
