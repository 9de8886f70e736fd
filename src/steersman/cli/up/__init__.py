"""The commands for applications: up, down, ps, page, logs, restart, stop, start, scale, exec, run and convert."""
