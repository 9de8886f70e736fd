"""The developer control plane: processes, containers and services as objects. Not built yet: this room holds no code.

What it will guarantee:

- **No orphans.** On Linux every process started here ends with its session, also a daemonised grandchild, also after
  kill -9; what cannot be guaranteed on another system is refused or said.
- State moves through the API alone: what the dashboard shows is what any client can read.
- A service keeps its address between runs.
"""
