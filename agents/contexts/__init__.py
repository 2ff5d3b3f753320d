"""Contexts of an agent's turns: their blocks, their budget, and their recorded form.

Reads conversations and growth, and neither imports this room. Read first: `assembly`, then
`blocks`.
"""
