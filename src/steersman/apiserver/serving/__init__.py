"""Serving: the API server on a port, with its own certificate authority and kubeconfig."""

from steersman.apiserver.serving.certificates import Authority as Authority, Credentials as Credentials
from steersman.apiserver.serving.kubeconfig import write_kubeconfig as write_kubeconfig
from steersman.apiserver.serving.serve import Served as Served, serve as serve
