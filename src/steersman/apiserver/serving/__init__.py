"""Serving: the API server on a port, with its own certificate authority and kubeconfig."""

from steersman.apiserver.serving.certificates import Authority as Authority
from steersman.apiserver.serving.kubeconfig import write_kubeconfig as write_kubeconfig
from steersman.apiserver.serving.secure_port import Served as Served, serve as serve
