"""Percent quoting: any text as a part of a URI.

Owns the letters that stay. Leaves out the URIs of each integration.
"""

import re

_QUOTED = re.compile(rb"[^A-Za-z0-9_.~-]")
_QUOTE = re.compile(rb"%([0-9A-F]{2})")


def quote(text: str) -> str:
    """Return a text with each byte of UTF-8 but letters, digits and "_.~-" as "%" and two digits.

    The quoted start of a text is the start of the quoted text.

    >>> quote("a/é"), unquote("a%2F%C3%A9")
    ('a%2F%C3%A9', 'a/é')
    """
    return _QUOTED.sub(lambda found: b"%%%02X" % found[0][0], text.encode()).decode()


def unquote(text: str) -> str:
    """Return the text that `quote` quoted."""
    return _QUOTE.sub(lambda found: bytes([int(found[1], 16)]), text.encode()).decode()
