"""Growth of an agent: proposals that a person judges, and the identity that follows from them.

Read first: `proposals`.
"""
