"""Links between frames and facts, and which facts they support.

Read first: `projection`, then `reader`.
"""
