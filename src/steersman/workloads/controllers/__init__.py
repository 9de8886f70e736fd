"""The controllers of the developer control plane, one module for each kind."""
