"""Sweeps of faults over operations: ``python -m cerata.fault_injection.sweeps``."""
