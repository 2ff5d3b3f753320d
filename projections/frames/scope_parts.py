"""The names and values of scopes as attributes, split when a reader first asks for them.

Most readers choose the scopes that they see by text, and few filters name a scope; so a load
splits none.
"""

import threading

from ..columnar.names import Names
from ..columnar.scopes import read_scope
from .attributes import Attributes, AttributeView


class ScopeParts:
    """Attributes of scopes; a row is the code of a scope. Any thread may ask."""

    def __init__(self, scopes: Names) -> None:
        self._scopes = scopes
        self._parts = Attributes()
        self._through = 0
        self._lock = threading.RLock()

    def view(self) -> AttributeView:
        """Return a reader of the scopes so far. Cost: about 5 us for each new scope.

        Raises:
            Corrupt: a scope cannot be decoded.
        """
        with self._lock:
            through = len(self._scopes)
            for code in range(self._through + 1, through + 1):
                for name, value in read_scope(self._scopes.text(code) or "[]"):
                    self._parts.add_value(code, 0, name, value)
                self._through = code
            self._parts.settle()
            return self._parts.view()
