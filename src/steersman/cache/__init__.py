"""Objects of a server, kept near and kept fresh by list and watch. Not built yet: this room holds no code.

What it will guarantee:

- **Never older than yourself.** After a write through this cache a get, a list or an index never answers a state of
  that object older than the write; reads of other keys do not wait for it.
- Objects are kept as the bytes they came in and decoded on read: what one reader changes no other reader sees.
- A lost, expired or silent watch heals by itself, with backoff; an object that cannot be decoded is an error of its own
  key and of nothing else.
- A server restored from an older backup is noticed, and everything remembered from before is dropped.
"""
