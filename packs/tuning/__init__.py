"""Tuning: the weights of a profile, learned from judged queries or from recorded recalls.

Read first: `verbs`.
"""
