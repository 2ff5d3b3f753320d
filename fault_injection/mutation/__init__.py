"""Planted faults, and the check that the detectors notice each of them."""
