"""The port for the kubelet, Prometheus and the on-call engineer.

A manager imports `steersman.manager.endpoints.handler` when it runs with a port.
"""

from steersman.manager.endpoints.http_endpoints import HttpEndpoints as HttpEndpoints
