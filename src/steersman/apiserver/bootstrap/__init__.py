"""Bootstrap: the objects that a server creates when it starts."""

from steersman.apiserver.bootstrap.namespaces import create_system_namespaces as create_system_namespaces
from steersman.apiserver.bootstrap.rbac_policy import create_policy as create_policy
