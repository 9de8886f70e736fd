"""Exploration: many runs of one scenario in forked processes, and the smallest schedule that fails."""
