"""A Kubernetes API server over a pluggable store. Not built yet: this room holds no code.

What it will guarantee:

- It answers as kube-apiserver does: one conformance suite sends the same requests to both and compares the answers.
- A write is one atomic step of the store, published to every watch in the order of its revision, or it did not happen.
- It works on JSON and schemas, never on the client's types: what it stores does not depend on who wrote it.
- It knows no client and no cache: everything it is told arrives as a request.
"""
