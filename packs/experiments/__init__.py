"""Experiments: recorded recalls asked again, and compared under other settings.

Read first: `verbs`.
"""
