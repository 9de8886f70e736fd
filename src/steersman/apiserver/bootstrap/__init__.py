"""Bootstrap: the objects that a server creates at its start, as kube-apiserver does.

A server creates only objects of the kinds that it serves. It creates roles and bindings only if it enforces RBAC, and
its endpoints only if it listens on a port.
"""

from steersman.apiserver.bootstrap.address import publish_address as publish_address
from steersman.apiserver.bootstrap.api_services import ApiServices as ApiServices
from steersman.apiserver.bootstrap.start import create_objects as create_objects
