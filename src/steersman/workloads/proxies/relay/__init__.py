"""The relay: a bare program that forwards the connections of all services of a session.

`RelayProxy` starts it as a Python without site packages, and controls it through a socket: one JSON document per line.
It has its own epoll loop and moves bulk data with `os.splice`, which copies nothing to this process.

Guarantees, on Linux
- When the control plane's end of the socket closes, the relay ends at once: no port is held after it.
- Memory is bounded: a connection holds at most one pipe or one buffer for each direction. A slow reader slows its sender.
- A turn of the loop moves a bounded amount for each connection: one busy connection delays no other for long.
- Without descriptors left, it stops accepting until a connection ends; new connections wait in the kernel's queue.

It imports nothing of Steersman.
"""

#: The name that tools such as ``ps`` and ``ss`` show.
NAME = "steersman-proxy"
