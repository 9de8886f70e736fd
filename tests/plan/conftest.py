"""What tests of plans share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from steersman.testing import Plane
from steersman.testing.embedded_host import EmbeddedHost
from steersman.testing.hosts import Host
from steersman.testing.plugin import namespace_for
from steersman.testing.remote_hosts import EngineHost


@pytest.fixture(params=("embedded", "engine"))
def plane(request: pytest.FixtureRequest) -> Iterator[Plane]:
    """An embedded control plane, and kube-apiserver: a plan rests on the dry runs of both."""
    if request.param == "embedded":
        host: Host = EmbeddedHost({}, in_thread=False, lasting=False)
    else:
        host = EngineHost(request.getfixturevalue("engine"))
    plane = Plane(host, namespace=namespace_for(request.node.name))
    yield plane
    plane.end()
    host.end()
