"""``steersman serve``: a Kubernetes API on a port, until it is told to stop.

Guarantees
- When the line with the kubeconfig is printed, the server answers; that line is all that goes to the standard output.
- The exit code is 0 after a stop that was asked for, 1 if it cannot be served, with a sentence that says why.
- With a folder everything that was answered is there after a restart, and the same certificates are good.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from steersman.apiserver import ApiServer, MemoryStorage
from steersman.apiserver.chain import Authentication, Rbac, Reviews, chain, create_policy
from steersman.apiserver.storage import JournaledStorage, StorageError
from steersman.cli.failure import Failure
from steersman.manager.signals import on_signals


def serve_api(*, port: int = 0, data: str | None = None, kubeconfig: str | None = None) -> int:
    """Serve; the result is an exit code."""
    try:
        with tempfile.TemporaryDirectory(prefix="steersman-") as temporary:
            folder = Path(data).absolute() if data is not None else Path(temporary)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            target = Path(kubeconfig).absolute() if kubeconfig is not None else folder / "kubeconfig"
            asyncio.run(_serve(folder, port=port, keep=data is not None, kubeconfig=target))
    except ModuleNotFoundError as error:
        if error.name != "cryptography":
            raise
        raise Failure("certificates need the package cryptography: pip install 'steersman[server]'") from error
    except (OSError, StorageError, ValueError) as error:
        raise Failure(str(error)) from error
    return 0


async def _serve(folder: Path, *, port: int, keep: bool, kubeconfig: Path) -> None:
    from steersman.apiserver.serving import serve  # noqa: PLC0415 - needs an extra, and says so

    stopped = asyncio.Event()
    async with AsyncExitStack() as stack:
        stack.enter_context(on_signals(stopped.set))
        storage = await stack.enter_async_context(JournaledStorage(folder / "journal") if keep else MemoryStorage())
        rbac, authentication = Rbac(storage), Authentication()
        server = ApiServer(
            storage=storage,
            definitions=Reviews(rbac, authentication).definitions(),
            chain=chain(authorizer=rbac, authentication=authentication),
        )
        served = await stack.enter_async_context(serve(server, folder=folder, port=port, kubeconfig=kubeconfig))
        await create_policy(server)
        where = f"objects are kept in {folder}" if keep else "objects are in memory; --data FOLDER keeps them"
        print(f"serving the Kubernetes API at {served.url}; {where}; Ctrl-C ends it", file=sys.stderr)
        print(f"export KUBECONFIG={shlex.quote(str(served.kubeconfig))}", flush=True)
        await stopped.wait()
    print("stopped", file=sys.stderr)
