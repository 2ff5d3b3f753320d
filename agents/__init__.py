"""Agents: recorded runs of agent functions, resumed after a kill and run again from the log.

Purpose: `Agent` opens sessions and runs; each call of a run is recorded with its result, so that
the function can run again without its tools. A `Slot` is typed memory that outlives runs. Read
first: `agent`, then `run` and `slot`.
"""
