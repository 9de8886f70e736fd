"""Serving: the API server on a port, with its own certificate authority and kubeconfig."""

from steersman.apiserver.serving.certificates import Authority, Credentials
from steersman.apiserver.serving.kubeconfig import write_kubeconfig
from steersman.apiserver.serving.serve import Served, serve

__all__ = ["Authority", "Credentials", "Served", "serve", "write_kubeconfig"]
