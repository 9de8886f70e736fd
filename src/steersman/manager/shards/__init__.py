"""Replicas that share the work of one program: pure steps, and the IO around them. See designs/scale.md."""
