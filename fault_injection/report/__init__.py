"""The report of crash states: ``python -m cerata.fault_injection.report``."""
