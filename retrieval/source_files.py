"""Files of source code by their names: which files hold tests.

Owns the rule on a URI or path. The names are those that test runners collect: pytest and unittest
(Python), Go, JUnit, RSpec, Jest. Pure.
"""

import re
from typing import Final

_TESTS: Final = re.compile(
    r"(?:^|[/\\:])(?:"
    r"(?:tests?|testing|__tests__|spec)[/\\]"
    r"|(?:test_[^/\\]*|conftest|[^/\\]+[._-](?:tests?|spec)|[^/\\]*[a-z0-9](?:Test|Tests|Spec))"
    r"\.\w+(?:$|[?#])"
    r")"
)


def is_test_file(uri: str) -> bool:
    """Return whether a URI or path is of a file of tests, by its folders and its name.

    >>> [is_test_file(path) for path in ("lib/test/test_heapq.py", "src/heapq.py", "a/latest/b.py")]
    [True, False, False]
    """
    return _TESTS.search(uri) is not None
