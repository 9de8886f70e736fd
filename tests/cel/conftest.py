"""The tests of CEL rules ask the engine's API server for verdicts."""

from samples.schema_server import path_of, server

__all__ = ["path_of", "server"]
