"""The stores of the shop: PostgreSQL through psql, and Redis through its protocol, so that nothing must be installed."""

import io
import os
import socket
import subprocess


def query(text: str, **values: str) -> list[list[str]]:
    """The rows of a statement; ``:'name'`` in it stands for a value."""
    variables = [word for name, value in values.items() for word in ("-v", f"{name}={value}")]
    command = ["psql", "-qtA", "-F", "\t", "-v", "ON_ERROR_STOP=1", *variables]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def redis(*words: str, timeout: float = 5.0) -> list[bytes]:
    """Send a command to Redis; returns the values of its answer."""
    address = (os.environ["REDIS_SERVICE_HOST"], int(os.environ["REDIS_SERVICE_PORT"]))
    with socket.create_connection(address, timeout=timeout) as connection, connection.makefile("rwb") as stream:
        parts = [b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()) for word in words]
        stream.write(b"*%d\r\n%s" % (len(words), b"".join(parts)))
        stream.flush()
        return _values(stream)


def _values(stream: io.BufferedRWPair) -> list[bytes]:
    kind, rest = (line := stream.readline())[:1], line[1:].strip()
    if kind == b"*":
        return [value for _ in range(max(int(rest), 0)) for value in _values(stream)]
    if kind == b"$":
        return [stream.read(int(rest) + 2)[:-2]] if int(rest) >= 0 else []
    if kind == b"-":
        raise RuntimeError(rest.decode())
    return [rest]
