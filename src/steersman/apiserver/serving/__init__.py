"""Serving: the API server on a port, with its own certificate authority and kubeconfig."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names

# Imported on first use: an authority needs the package cryptography, and a port needs aiohttp.
if TYPE_CHECKING:
    from steersman.apiserver.serving.certificate_process import (
        CertificateProcess as CertificateProcess,
        CertificateSource as CertificateSource,
        ServerCertificates as ServerCertificates,
    )
    from steersman.apiserver.serving.certificates import Authority as Authority
    from steersman.apiserver.serving.kubeconfig import write_kubeconfig as write_kubeconfig
    from steersman.apiserver.serving.secure_port import Served as Served, serve as serve
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.apiserver.serving.certificate_process": [
                "CertificateProcess",
                "CertificateSource",
                "ServerCertificates",
            ],
            "steersman.apiserver.serving.certificates": ["Authority"],
            "steersman.apiserver.serving.kubeconfig": ["write_kubeconfig"],
            "steersman.apiserver.serving.secure_port": ["Served", "serve"],
        },
    )
