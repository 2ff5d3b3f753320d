"""Activities: the sessions and runs of agents, and their calls.

Limits: a call is recorded after it finished. Read first: `events`, then `projection`.
"""
