"""An operator in a process of its own, as ``steersman run`` has it, made to be killed.

``operator_process.py MODULE:manager`` imports everything, says ``ready``, and waits for a line before it runs: a test that
kills it again and again has the next one at hand, and does not spend the time on imports. It ends with its parent.
"""

import os
import sys
import threading

from steersman.cli.run import RunOptions, run_manager
from steersman.cli.targets.modules import load_module, look_here_first


def _end_with_the_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(3)


def main(target: str) -> int:
    look_here_first()
    load_module(target.partition(":")[0])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    if not sys.stdin.buffer.readline():
        return 0
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    return run_manager(RunOptions(target=target, log_format="text", log_level="warning"))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
