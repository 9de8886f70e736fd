"""Verdicts: whether a run ended as it must."""
