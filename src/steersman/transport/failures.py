"""Converts aiohttp's exceptions to API errors.

Guarantees
- Each error names the operation, the server, the failure and the next step.
- The original exception is dropped: some contain the headers of the request, including credentials.
"""

from __future__ import annotations

import asyncio
import errno
import re

import aiohttp

from steersman.errors import ApiError, ConnectionFailed, DeadlineExceeded, ProtocolError

# aiohttp quotes what it could not parse, which may be the body of a response. Matching starts only where spaces start.
_QUOTED = re.compile(r"(?<![:\s])[:\s]*+(?<!\w)b?['\"].*", re.DOTALL)


def explain(error: BaseException, *, tried: str, server: str, sent: bool) -> ApiError:  # noqa: PLR0911 - one for each kind
    """Convert a failure of an exchange to an API error."""
    match error:
        case aiohttp.ConnectionTimeoutError():
            return ConnectionFailed(
                f"{tried}: {server} did not accept a connection in time; is it running and reachable?"
            )
        case asyncio.TimeoutError():
            state = "did not respond in time" if sent else "could not be reached in time"
            return DeadlineExceeded(f"{tried}: {server} {state}", sent=sent)
        case aiohttp.ClientHttpProxyError():
            return ConnectionFailed(
                f"{tried}: the proxy refused to connect to {server} ({error.status}); check proxy-url, HTTPS_PROXY and"
                " NO_PROXY"
            )
        case aiohttp.ClientConnectorError():
            return ConnectionFailed(f"{tried}: {_explain_connecting(error, server)}")
        case aiohttp.ClientPayloadError():
            return ConnectionFailed(f"{tried}: the connection to {server} broke during the response", sent=True)
        case aiohttp.ClientResponseError() | aiohttp.http.HttpProcessingError():
            return ProtocolError(
                f"{tried}: {server} did not respond with HTTP: {_one_line(_QUOTED.sub('', error.message))}"
            )
        case aiohttp.ServerDisconnectedError():
            return ConnectionFailed(f"{tried}: {server} closed the connection without a response", sent=sent)
        case OSError():
            return ConnectionFailed(f"{tried}: the connection to {server} broke: {_reason(error)}", sent=sent)
        case _:
            return ConnectionFailed(f"{tried}: the connection to {server} failed: {_one_line(str(error))}", sent=sent)


def _explain_connecting(error: aiohttp.ClientConnectorError, server: str) -> str:
    """Explain why there is no connection. No byte of the request was sent."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return f"the host of {server} is unknown: {_reason(error)}; check the address of the server"
        case aiohttp.ClientProxyConnectionError():
            return f"cannot reach the proxy for {server}: {_reason(error)}; check proxy-url and HTTPS_PROXY"
        case aiohttp.ClientConnectorCertificateError():
            return _explain_certificate(error.certificate_error, server)
        case aiohttp.ClientConnectorSSLError():
            return (
                f"TLS with {server} failed: {_reason(error)};"
                " does it serve TLS on this port, and does it require a client certificate?"
            )
        case _:
            return f"cannot reach {server}: {_reason(error)}; is it running?"


def _explain_certificate(error: Exception, server: str) -> str:
    message = getattr(error, "verify_message", "") or _one_line(str(error))
    lowered = message.lower()
    if "mismatch" in lowered or "not valid for" in lowered:
        advice = "use a name that is in the certificate, or set tls-server-name to one"
    elif "expired" in lowered or "not yet valid" in lowered:
        advice = "renew it, or set the clock of this machine"
    else:
        advice = "check certificate-authority in the kubeconfig: it must contain the CA that signed it"
    return f"the certificate of {server} is not trusted: {message}; {advice}"


def _reason(error: BaseException) -> str:
    """The reason in the words of the system or OpenSSL, without addresses and objects."""
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
