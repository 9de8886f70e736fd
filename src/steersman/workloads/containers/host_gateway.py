"""The address of the host for ``--add-host NAME:host-gateway``, which Podman understands since version 4.7. Pure.

For an older Podman, the gateway of the container's first network replaces the word, as newer versions do it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from steersman.workloads.containers.runner import ContainerLaunch, ContainerRuntimeError

_WORD = "host-gateway"
#: What an older Podman says.
_REFUSAL = f'invalid IP address in add-host: "{_WORD}"'


def refuses_gateway(error: ContainerRuntimeError) -> bool:
    """Whether the runtime is too old for ``host-gateway``."""
    return _REFUSAL in str(error)


def with_gateway(launch: ContainerLaunch, gateways: Sequence[str], *, is_root: bool) -> ContainerLaunch:
    """The launch with an address in place of ``host-gateway``. Raises `ContainerRuntimeError` if it has none."""
    address = (
        "127.0.0.1" if _shares_the_host(launch) else next(iter(sorted(gateways, key=lambda each: ":" in each)), "")
    )
    # Without root, the gateway is in a network namespace of Podman, where nothing of the host listens.
    if not address or not (is_root or _shares_the_host(launch)):
        raise ContainerRuntimeError(
            f"extra_hosts: this version of Podman does not support {_WORD}: use Podman 4.7 or newer, or write the address"
            f" of this machine in place of {_WORD}"
        )
    arguments = [
        f"{each.removesuffix(_WORD)}{address}" if option == "--add-host" and each.endswith(f":{_WORD}") else each
        for option, each in zip(("", *launch.run_args), launch.run_args, strict=False)
    ]
    return msgspec.structs.replace(launch, run_args=arguments)


def _shares_the_host(launch: ContainerLaunch) -> bool:
    return ("--network", "host") in zip(launch.run_args, launch.run_args[1:], strict=False)
