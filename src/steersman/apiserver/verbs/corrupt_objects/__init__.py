"""Stored objects that cannot be read, as no webhook can convert them: what requests report, and their deletion."""
