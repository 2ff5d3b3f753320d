"""Tuning: weights of a profile that fit a user's judged questions, and the honest gain.

Read `tuning` first: it has the call and its result. Leaves out searching (`cerata.memory.search`)
and the fit itself (`cerata.retrieval.ranking.learning`).
"""
