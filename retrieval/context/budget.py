"""The default budget of an entry: below the modules that pack, which load the whole search."""

from typing import Final

ENTRY_TOKENS_MAX: Final = 1_000
"""Default for the most tokens of one entry, its source included."""
