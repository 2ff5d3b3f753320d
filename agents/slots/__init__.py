"""Slots: the memory that each agent declares, in the log.

Limits: the declarations alone. Values of slots are frames (`cerata.agents.slot`).
Read first: `rows`.
"""
