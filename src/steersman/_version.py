"""The version, read by the build and by ``steersman --version``."""

__version__ = "0.1.0.dev0"
