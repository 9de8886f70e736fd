"""What aiohttp raises, as errors of the API.

Guarantees
- Each error says what was tried, with which server, what failed and what to do next.
- The original exception is not kept: some hold the headers of the request, and with them its credentials.
"""

from __future__ import annotations

import asyncio
import errno
import re

import aiohttp

from steersman.objects.errors import ApiError, ConnectionFailed, DeadlineExceeded, ProtocolError
from steersman.transport.connector import BrokenExchangeError

# aiohttp quotes what it could not read, which may be the body of an answer
_QUOTED = re.compile(r"[:\s]*(?<!\w)b?['\"].*", re.DOTALL)


def explain(error: BaseException, *, tried: str, server: str, sent: bool) -> ApiError:  # noqa: PLR0911 - one for each kind
    """Turn a failure of an exchange into an error of the API."""
    if isinstance(error, BrokenExchangeError):
        error = error.failure or aiohttp.ServerDisconnectedError()
    match error:
        case aiohttp.ConnectionTimeoutError():
            return ConnectionFailed(
                f"{tried}: {server} did not accept a connection in time; is it up, and is it reachable?"
            )
        case asyncio.TimeoutError():
            state = "did not answer in time" if sent else "could not be reached in time"
            return DeadlineExceeded(f"{tried}: {server} {state}", sent=sent)
        case aiohttp.ClientHttpProxyError():
            return ConnectionFailed(
                f"{tried}: the proxy refuses to connect to {server} ({error.status}); check proxy-url, HTTPS_PROXY and NO_PROXY"
            )
        case aiohttp.ClientConnectorError():
            return ConnectionFailed(f"{tried}: {_explain_connecting(error, server)}")
        case aiohttp.ClientPayloadError():
            return ConnectionFailed(f"{tried}: the connection to {server} broke in the middle of the answer", sent=True)
        case aiohttp.ClientResponseError() | aiohttp.http.HttpProcessingError():
            return ProtocolError(
                f"{tried}: {server} did not answer in HTTP: {_one_line(_QUOTED.sub('', error.message))}"
            )
        case aiohttp.ServerDisconnectedError():
            return ConnectionFailed(f"{tried}: {server} closed the connection without an answer", sent=sent)
        case OSError():
            return ConnectionFailed(f"{tried}: the connection to {server} broke: {_reason(error)}", sent=sent)
        case _:
            return ConnectionFailed(f"{tried}: the connection to {server} failed: {_one_line(str(error))}", sent=sent)


def _explain_connecting(error: aiohttp.ClientConnectorError, server: str) -> str:
    """Say why there is no connection. Not one byte of the request was sent."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return f"the host of {server} is not known: {_reason(error)}; check the address of the server"
        case aiohttp.ClientProxyConnectionError():
            return f"the proxy before {server} cannot be reached: {_reason(error)}; check proxy-url and HTTPS_PROXY"
        case aiohttp.ClientConnectorCertificateError():
            return _explain_certificate(error.certificate_error, server)
        case aiohttp.ClientConnectorSSLError():
            return (
                f"TLS with {server} failed: {_reason(error)};"
                " does it speak TLS on this port, and does it want a client certificate?"
            )
        case _:
            return f"{server} cannot be reached: {_reason(error)}; is it up?"


def _explain_certificate(error: Exception, server: str) -> str:
    message = getattr(error, "verify_message", "") or _one_line(str(error))
    lowered = message.lower()
    if "mismatch" in lowered or "not valid for" in lowered:
        advice = "use a name that is in the certificate, or set tls-server-name to one"
    elif "expired" in lowered or "not yet valid" in lowered:
        advice = "renew it, or set the clock of this machine"
    else:
        advice = "check certificate-authority in the kubeconfig: it must hold the CA that signed it"
    return f"the certificate of {server} is not trusted: {message}; {advice}"


def _reason(error: BaseException) -> str:
    """Say why in the words of the system or of OpenSSL, without addresses and objects."""
    inner = getattr(error, "os_error", None) or error
    reason = getattr(inner, "reason", None)
    if isinstance(reason, str) and reason:
        return reason.lower().replace("_", " ")
    number = getattr(inner, "errno", None)
    if number == errno.ECONNREFUSED:
        return "connection refused"
    text = getattr(inner, "strerror", None)
    return _one_line(text if isinstance(text, str) and text else str(inner)) or type(inner).__name__


def _one_line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 200 else words[:200] + "..."
