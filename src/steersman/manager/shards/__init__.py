"""Which replica works on which hashes, as pure steps. Nothing uses it yet: see designs/scale.md."""
