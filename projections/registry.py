"""Which projections a store folds: the built-in ones, and those that a user brings.

Owns names: each is one projection in a store. A process folds and publishes what is in its own
registry; what others left in the file it carries unchanged.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, cast

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import EventBody

from .accesses import Accesses
from .fact_text import FactTextProjection
from .facts import FactsProjection
from .frames import FramesProjection
from .fulltext import FulltextProjection
from .links import LinksProjection
from .projection import Projection, salt_of
from .row_fold import MakeOwn, OwnProjection, row_fold
from .rows import RowProjection
from .tags import Tags
from .vectors import VectorsProjection

Make = Callable[[], Projection]

BUILT_IN: Final[Mapping[str, Make]] = {
    FramesProjection.name: FramesProjection,
    FulltextProjection.name: FulltextProjection,
    FactsProjection.name: FactsProjection,
    FactTextProjection.name: FactTextProjection,
    LinksProjection.name: LinksProjection,
    VectorsProjection.name: VectorsProjection,
    Tags.name: lambda: row_fold(Tags),
    Accesses.name: lambda: row_fold(Accesses),
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
            InvalidInput: a name is missing, malformed or taken; one is no `RowProjection`, or
                says of itself what cannot be.
        """
        self._makes: dict[str, Make] = dict(BUILT_IN)
        if isinstance(own, str | Mapping) or not isinstance(own, Iterable):
            raise InvalidInput(
                f"projections is {own!r}, which is no list",
                remedy="Write projections=[YourProjection].",
            )
        for make in own:
            made = _made(make)
            self._check_name(made.name)
            _check_kind(made)
            self._makes[made.name] = partial(row_fold, make)

    def _check_name(self, name: object) -> None:
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


def _made(make: MakeOwn) -> OwnProjection:
    """Return what a user's class or function makes."""
    try:
        made = make() if callable(make) else None
    except MemoryError:
        raise
    except Exception as error:
        raise InvalidInput(
            f"{make!r} cannot make a projection: {type(error).__name__}: {error}",
            remedy="Pass classes, or functions, that need no arguments.",
        ) from error
    if not isinstance(made, RowProjection):
        raise InvalidInput(
            f"{make!r} makes no projection", remedy="Pass subclasses of cerata.RowProjection."
        )
    return made


def _check_kind(made: OwnProjection) -> None:
    """Refuse a version, parameters or kinds of events that a state cannot go by."""
    where = f"projection {made.name!r}"
    version: object = made.version
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version < 1 << 31:
        raise InvalidInput(
            f"version is {version!r}", where=where, remedy="Set it to a whole number from 0."
        )
    handles: object = made.handles
    if isinstance(handles, str | type) or not isinstance(handles, Collection):
        raise InvalidInput(
            f"handles is {handles!r}, which is no collection",
            where=where,
            remedy="Write handles = (PutFrame,), also for one kind of event.",
        )
    for kind in cast("Collection[object]", handles):
        is_body = isinstance(kind, type) and issubclass(kind, EventBody) and kind.wire_name
        if not is_body and not (isinstance(kind, str) and kind):
            raise InvalidInput(
                f"handles has {kind!r}, which is no kind of event",
                where=where,
                remedy="Name classes decorated with @event, or wire names.",
            )
    _check_parameters(made, where)


def _check_parameters(made: OwnProjection, where: str) -> None:
    try:
        parameters = cast("dict[object, object]", dict(made.parameters))
        salt_of(made.name, made.version, made.parameters)
    except MemoryError:
        raise
    except Exception as error:
        raise InvalidInput(
            f"parameters cannot be saved: {type(error).__name__}: {error}",
            where=where,
            remedy="Return a map from names to strings, whole numbers and bools.",
        ) from error
    for name, value in parameters.items():
        if not isinstance(name, str) or not isinstance(value, str | int):
            raise InvalidInput(
                f"parameters has {name!r}: {value!r}",
                where=where,
                remedy="Return a map from names to strings, whole numbers and bools.",
            )


def projection_key(projection: Projection) -> str:
    """Return the name of a projection in the TOC: other parameters are another projection."""
    salt = salt_of(projection.name, projection.version, projection.parameters)
    return f"{projection.name}/{projection.version}/{salt[:8].hex()}"
