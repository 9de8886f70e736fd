"""Answers of a server that fails, as kube-apiserver and the load balancers before it write them."""

from __future__ import annotations

from steersman.errors import ApiStatus, encode_status
from steersman.simulation.runs.faults import Outage, ServerError, ServerTimeout, Throttled
from steersman.transport import ServerResponse
from steersman.wire import JSON


def refusal(fault: Throttled | ServerError | ServerTimeout | Outage) -> ServerResponse:
    """What the client gets in place of the answer to its request."""
    match fault:
        case Throttled():
            headers = (("Content-Type", "text/plain; charset=utf-8"), ("Retry-After", "1"))
            return ServerResponse(status=429, headers=headers, body=b"Too many requests, please try again later.\n")
        case ServerError():
            return _status(500, "InternalError", "Internal error occurred: etcdserver: leader changed")
        case ServerTimeout():
            return _status(504, "Timeout", "Timeout: request did not complete within the allotted timeout")
        case Outage():
            headers = (("Content-Type", "text/html"),)
            body = b"<html><body><h1>503 Service Unavailable</h1>\nNo server is available to handle this request.\n"
            return ServerResponse(status=503, headers=headers, body=body + b"</body></html>\n")


def _status(code: int, reason: str, message: str) -> ServerResponse:
    status = ApiStatus(status="Failure", message=message, reason=reason, code=code)
    return ServerResponse(status=code, headers=(("Content-Type", JSON),), body=encode_status(status))
