"""The proxy: a stable address for each service, and connections to the endpoints behind it.

Guarantees
- A service listens before it has an endpoint. Connections wait: 20 of them with 1 MB each, and more in the kernel's queue.
- Connections go to the endpoints in turn. If an endpoint refuses, the proxy tries the next one.
- A connection reaches only a listener of the endpoint's own processes, at 127.0.0.1 or ::1, whichever they listen at.
- Data, half-closed connections, resets and slow readers pass through as they are.
- The proxy ends with its control plane, however that ends, and holds no port after it.
"""

from steersman.workloads.proxies.proxy import (
    CannotListen as CannotListen,
    Forwarding as Forwarding,
    Place as Place,
    Proxy as Proxy,
    ProxyState as ProxyState,
    SimulatedProxy as SimulatedProxy,
    StateListener as StateListener,
)
from steersman.workloads.proxies.relay.listeners import Listeners as Listeners, candidates as candidates
from steersman.workloads.proxies.relay_proxy import RelayProxy as RelayProxy
