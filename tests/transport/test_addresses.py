"""Addresses: where this machine reaches a listener."""

from __future__ import annotations

import pytest

from steersman.cli.announcement import endpoints_url
from steersman.manager import HttpEndpoints
from steersman.transport import local_address


@pytest.mark.parametrize(
    ("address", "expected"),
    [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("192.0.2.1", "192.0.2.1"), ("::1", "::1"), ("localhost", "localhost")],
)
def test_a_listener_on_all_interfaces_is_reached_at_the_loopback_of_its_family(address: str, expected: str) -> None:
    """An address that means all interfaces is one to listen at: not every system can connect to it."""
    assert local_address(address) == expected


def test_the_address_that_run_shows_is_one_that_the_endpoints_have() -> None:
    """A listener at ``::`` accepts IPv6 alone, so the URL shown to people must not be an IPv4 address."""
    assert endpoints_url(HttpEndpoints(host="::", port=8080)) == "http://[::1]:8080"
    assert endpoints_url(HttpEndpoints(host="0.0.0.0", port=8080)) == "http://127.0.0.1:8080"
    assert endpoints_url(HttpEndpoints(host="", port=8080)) == "http://127.0.0.1:8080"
    assert endpoints_url(None) == ""
