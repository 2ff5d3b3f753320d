"""Which projections a store folds: the built-in ones, and those that a user brings.

Owns names: each is one projection in a store. A process folds and publishes what is in its own
registry; what others left in the file it carries unchanged.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from cerata.engine.errors import InvalidInput, NotFound

from .frames import FramesProjection
from .fulltext import FulltextProjection
from .projection import Projection, salt_of
from .row_fold import MakeOwn, OwnProjection, row_fold
from .rows import RowProjection
from .tags import Tags

Make = Callable[[], Projection]

BUILT_IN: Final[Mapping[str, Make]] = {
    FramesProjection.name: FramesProjection,
    FulltextProjection.name: FulltextProjection,
    Tags.name: lambda: row_fold(Tags),
}
"""Every projection that any store has, in the order in which they are saved."""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")


class Registry:
    """The projections of one store, by name; immutable.

    - ``make(name)`` gives a new one, with nothing folded.
    """

    def __init__(self, own: Sequence[MakeOwn] = ()) -> None:
        """``own``: subclasses of `RowProjection`, or what makes instances when called.

        Raises:
            InvalidInput: a name is missing, malformed or taken, or one is no `RowProjection`.
        """
        self._makes: dict[str, Make] = dict(BUILT_IN)
        for make in own:
            made = make() if callable(make) else None
            if not isinstance(made, RowProjection):
                raise InvalidInput(
                    f"{make!r} makes no projection",
                    remedy="Pass subclasses of cerata.RowProjection.",
                )
            self._add(made, make)

    def _add(self, made: OwnProjection, make: MakeOwn) -> None:
        name = made.name
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidInput(
                f"A projection cannot be named {name!r}",
                remedy="Set name to lower-case letters, digits and '-', such as 'tag-counts'.",
            )
        if name in self._makes:
            raise InvalidInput(
                f"The projection name {name!r} is taken",
                remedy="Rename one of the two; its saved state goes by the name.",
            )
        self._makes[name] = lambda: row_fold(make)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all projections, in the order in which they are saved."""
        return tuple(self._makes)

    def make(self, name: str) -> Projection:
        """Return a projection with nothing folded.

        Raises:
            NotFound: there is none of this name.
        """
        make = self._makes.get(name)
        if make is None:
            raise NotFound(
                f"There is no projection {name!r}",
                remedy=f"There are {', '.join(self.names)}; pass others to open(projections=…).",
            )
        return make()


def projection_key(projection: Projection) -> str:
    """Return the name of a projection in the TOC: other parameters are another projection."""
    salt = salt_of(projection.name, projection.version, projection.parameters)
    return f"{projection.name}/{projection.version}/{salt[:8].hex()}"
