"""The API server with its own controllers, assembled. Not built yet: this room holds no code.

What it will guarantee:

- One call gives a working control plane: garbage collection, namespaces, custom resource definitions and a client.
- It starts in milliseconds in this process, or serves on a port for kubectl and any other client.
- Everything it started has ended when its `async with` block has ended.
"""
