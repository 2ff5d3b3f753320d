"""Readings of the entities around an agent: names that fit several, and chains of relations.

Each is computed from the log as of a basis, and never stored. Read first: `pending_names`.
"""
