"""Modules that are imported at their first use.

Owns `Late`. Numpy and the modules that need it take most of the start of a process, and few
commands use them all. A module names what it imports late twice, so that type checkers see it::

    if TYPE_CHECKING:
        import numpy as np
    else:
        np = late("numpy")
"""
