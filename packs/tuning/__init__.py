"""Tuning: the weights of a profile, learned from judged queries or from recorded recalls.

`tune` takes a store or a view first, and writes nothing. Importing this package loads no part of
it. Read first: `tuning`.
"""

from typing import TYPE_CHECKING

from cerata.engine.late import late_names

if TYPE_CHECKING:
    from .tuning import tune as tune

__all__ = ["tune"]

__getattr__ = late_names(__name__, {"tune": "tuning"})
