"""Targets: the modules and managers that a command line names."""
