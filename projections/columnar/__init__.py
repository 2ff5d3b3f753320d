"""Columns that only grow, and the tables, codes and orders built on them.

Read first: `columns`.
"""
