"""Activities of agents, and their calls.

Read first: `projection`, then `reader`.
"""
