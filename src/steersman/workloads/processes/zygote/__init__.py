"""The zygote and its shims: a bare program that parents every process of a session, so that none outlives it.

`ZygoteRunner` starts one zygote for a session, as a Python without site packages. For each Executable the zygote forks a
shim, which starts the program and stays its parent.

Guarantees, on Linux
- A shim is a child subreaper: a descendant that daemonizes comes back to it. A shim ends when it has no child left.
- If the control plane ends, each of its sockets closes. Every shim then stops its program: the stop signal, the timeout,
  then SIGKILL for all descendants, again and again until none is left.
- If a shim is killed, its descendants come to the zygote, which kills them.
- The output of a program goes to files of bounded size. A full disk loses output and never blocks the program.
- Secrets travel through a socket, never through arguments.

It cannot end a descendant that has become another user (a setuid program): the kernel refuses the signal.

A shim must be small, and each Python object that it touches costs it a page of its own. So this package imports nothing of
Steersman, a shim reads and writes descriptors instead of sockets, and the protocol is lines of text, see `runner`.
"""
