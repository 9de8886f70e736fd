"""The default configuration of a client: one search order, and an error that lists every place tried."""

from __future__ import annotations

import os

from steersman.client.configuration.config import Config
from steersman.client.configuration.kubeconfig import Paths, load_kubeconfig, read_kubeconfig
from steersman.client.configuration.pod_config import SERVICE_ACCOUNT_FOLDER, in_cluster_config
from steersman.client.configuration.secrecy import printable
from steersman.errors import ConfigError


def discover_config(
    config: Config | None = None,
    *,
    kubeconfig: Paths | None = None,
    context: str | None = None,
    service_account: str | os.PathLike[str] = SERVICE_ACCOUNT_FOLDER,
) -> Config:
    """Return the first of: `config`, `kubeconfig`, ``KUBECONFIG``, ``~/.kube/config``, the pod's service account.

    As with kubectl, ``~/.kube/config`` is not read if ``KUBECONFIG`` is set: this prevents reaching another cluster by
    mistake. Missing files and files without contexts are skipped; a broken file is an error, and so is a `context` that
    no file contains.
    """
    if config is not None:
        return config
    if kubeconfig is not None:
        return load_kubeconfig(kubeconfig, context=context)
    merged = read_kubeconfig()
    if merged.files and (context or not merged.is_empty):
        return merged.config(context)
    named = "KUBECONFIG" if os.environ.get("KUBECONFIG") else "the default kubeconfig"
    tried = [f"{named}: {printable(file, limit=400)} does not exist" for file in merged.missing]
    tried += [f"{named}: {printable(file, limit=400)} has no contexts" for file in merged.files]
    if context:
        tried.append(
            f'skipped the service account: context "{printable(context, limit=200)}" can only be in a kubeconfig'
        )
    else:
        try:
            return in_cluster_config(service_account)
        except ConfigError as error:
            tried.append(f"the service account: {error}")
    listed = "".join(f"\n  - {place}" for place in tried)
    raise ConfigError(
        f"found no configuration for a Kubernetes API server; tried:{listed}\n"
        "Pass a Config or kubeconfig=PATH, set KUBECONFIG, or run in a pod"
    )
