"""The registry of a store's projections: built-in, and defined by the user.

Owns names: a name is a single projection in a store. A process folds and publishes the projections
of its registry, and carries other projections in the file unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from cerata.engine.arguments import is_integer
from cerata.engine.errors import InvalidInput, NotFound, value_text
from cerata.engine.events import EventBody
from cerata.engine.late import late
from cerata.engine.packs import Pack, State, saved_names, shipped_packs, target

from .core.projection import Projection, salt_of

if TYPE_CHECKING:
    from .facts import projection as facts_projection
    from .facts import text_projection as fact_text_projection
    from .frames import projection as frames_projection
    from .fulltext import projection as fulltext_projection
    from .links import projection as links_projection
    from .rows import built_in, row_projection
    from .rows import built_in as embedder_rows
    from .rows import built_in as tag_rows
    from .rows import row_fold as rows_fold
    from .rows.row_fold import MakeOwn, OwnProjection
    from .vectors import projection as vectors_projection
else:
    facts_projection = late("cerata.projections.facts.projection")
    fact_text_projection = late("cerata.projections.facts.text_projection")
    frames_projection = late("cerata.projections.frames.projection")
    fulltext_projection = late("cerata.projections.fulltext.projection")
    links_projection = late("cerata.projections.links.projection")
    vectors_projection = late("cerata.projections.vectors.projection")
    built_in = late("cerata.projections.rows.built_in")
    embedder_rows = late("cerata.projections.rows.built_in")
    tag_rows = late("cerata.projections.rows.built_in")
    rows_fold = late("cerata.projections.rows.row_fold")
    row_projection = late("cerata.projections.rows.row_projection")


Make = Callable[[], Projection]


def _maker(state: State) -> Make:
    def make() -> Projection:
        kind = target(state.target)
        has_rows = issubclass(target(state.target), row_projection.RowProjection)
        made: Projection = rows_fold.row_fold(kind) if has_rows else kind()
        return made

    return make


_STATES: Final = {state.name: state for pack in shipped_packs() for state in pack.states}

_MAKES: Final[Mapping[str, Make]] = {
    "frames": lambda: frames_projection.FramesProjection(),  # noqa: PLW0108
    "fulltext": lambda: fulltext_projection.FulltextProjection(),  # noqa: PLW0108
    "facts": lambda: facts_projection.FactsProjection(),  # noqa: PLW0108
    "facttext": lambda: fact_text_projection.FactTextProjection(),  # noqa: PLW0108
    "links": lambda: links_projection.LinksProjection(),  # noqa: PLW0108
    "vectors": lambda: vectors_projection.VectorsProjection(),  # noqa: PLW0108
    "tags": lambda: rows_fold.row_fold(tag_rows.Tags),
    "access": lambda: rows_fold.row_fold(built_in.Accesses),
    "embedders": lambda: rows_fold.row_fold(embedder_rows.UsedEmbedders),
}
"""The projections of the kernel."""

BUILT_IN: Final[Mapping[str, Make]] = {
    name: _MAKES.get(name) or _maker(_STATES[name]) for name in saved_names(_MAKES)
}
"""The projections of every store by name, in the order in which they are saved.

The module of a projection is loaded when the projection is used.
"""

_KEYS: Final[Mapping[str, str]] = {
    "frames": "frames/5/ca14945a5d97abb8",
    "fulltext": "fulltext/7/55ad1102003f2e76",
    "facts": "facts/4/4dfdae6f05554b00",
    "facttext": "facttext/5/4f8314773b4d7c1e",
    "links": "links/1/1bbadee4ec4cbf04",
    "vectors": "vectors/2/1bddd2019beea647",
    "tags": "tags/2/ca5f834418e5c25c",
    "access": "access/1/863f7fd6ea4ee7af",
    "embedders": "embedders/1/da9fb9a52d52567e",
    **{name: state.key for name, state in _STATES.items()},
}
"""The `projection_key` of each built-in projection: its checkpoint is found without its module."""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")


class Registry:
    """The projections of a store, by name; immutable."""

    def __init__(self, own: Sequence[MakeOwn] = (), packs: Sequence[Pack] = ()) -> None:
        """Add the user's projections: subclasses of `RowProjection`, or functions that return one.

        Args:
            own: The projections.
            packs: Checked packs of the user, whose states come before ``own``.

        Raises:
            InvalidInput: a name is missing, malformed or taken; an item creates no `RowProjection`;
                a version, parameters or ``handles`` is invalid; or the key of a state is not that
                of its class.
        """
        self._makes: dict[str, Make] = dict(BUILT_IN)
        for pack in packs:
            for state in () if pack in shipped_packs() else pack.states:
                self._add_state(state, f"pack {pack.name!r}")
        if isinstance(own, str | Mapping) or not isinstance(own, Iterable):
            raise InvalidInput(
                f"projections must be a list of classes, not {value_text(own)}",
                remedy="Pass projections=[YourProjection].",
            )
        for make in own:
            self._add(make)

    def _add(self, make: MakeOwn) -> OwnProjection:
        projection = _created(make)
        self._check_name(projection.name)
        _check_kind(projection)
        self._makes[projection.name] = partial(rows_fold.row_fold, make)
        return projection

    def _add_state(self, state: State, where: str) -> None:
        projection = self._add(target(state.target))
        key = projection_key(rows_fold.row_fold(target(state.target)))
        if (projection.name, key) != (state.name, state.key):
            raise InvalidInput(
                f"The state {state.name!r} has the key {state.key!r}, and its class makes {key!r}",
                where=where,
                remedy=f"Write State({projection.name!r}, {key!r}, {state.target!r}).",
            )

    def _check_name(self, name: object) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidInput(
                f"A projection cannot be named {name!r}",
                remedy="Set name to lower-case letters, digits and '-', such as 'tag-counts'.",
            )
        if name in self._makes:
            raise InvalidInput(
                f"The projection name {name!r} is taken",
                remedy="Set another name in one of the two; the saved state has this name.",
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all projections, in the order in which they are saved."""
        return tuple(self._makes)

    def key(self, name: str) -> str:
        """Return the `projection_key` of a projection. Raises `NotFound`, as `make`."""
        return _KEYS.get(name) or projection_key(self.make(name))

    def make(self, name: str) -> Projection:
        """Return a new projection, with nothing folded.

        Raises:
            NotFound: no projection has this name.
        """
        make = self._makes.get(name)
        if make is None:
            raise NotFound(
                f"There is no projection {value_text(name):.120}",
                remedy=f"Use {', '.join(self.names)}, or pass a class to open(projections=…).",
            )
        return make()


def _created(make: MakeOwn) -> OwnProjection:
    try:
        projection = make() if callable(make) else None
    except MemoryError:
        raise
    except Exception as error:
        raise InvalidInput(
            f"{make!r} cannot create a projection: {type(error).__name__}: {error}",
            remedy="Pass classes or functions that need no arguments.",
        ) from error
    if not isinstance(projection, row_projection.RowProjection):
        raise InvalidInput(
            f"{value_text(make)} creates no projection",
            remedy="Pass subclasses of cerata.RowProjection.",
        )
    return projection


def _check_kind(projection: OwnProjection) -> None:
    """Raise `InvalidInput` if a version, ``handles`` or parameters are invalid."""
    where = f"projection {projection.name!r}"
    version: object = projection.version
    if not is_integer(version) or not 0 <= version < 1 << 31:
        raise InvalidInput(
            f"version is {version!r}, expected a whole number from 0 to 2**31 - 1",
            where=where,
            remedy="Set version = 1, and raise it with each change of apply().",
        )
    handles: object = projection.handles
    if isinstance(handles, str | type) or not isinstance(handles, Collection):
        raise InvalidInput(
            f"handles must be a collection of event types, not {handles!r}",
            where=where,
            remedy="Write handles = (PutFrame,), also for a single type.",
        )
    for kind in cast("Collection[object]", handles):
        is_body = isinstance(kind, type) and issubclass(kind, EventBody) and kind.wire_name
        if not is_body and not (isinstance(kind, str) and kind):
            raise InvalidInput(
                f"handles has {kind!r}, which is no type of event",
                where=where,
                remedy="Name classes decorated with @event, or wire names.",
            )
    _check_parameters(projection, where)


def _check_parameters(projection: OwnProjection, where: str) -> None:
    try:
        parameters = cast("dict[object, object]", dict(projection.parameters))
        salt_of(projection.name, projection.version, projection.parameters)
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
                f"parameters maps {name!r} to {value!r}, expected a str to a str, int or bool",
                where=where,
                remedy="Return a map from names to strings, whole numbers and bools.",
            )


def projection_key(projection: Projection) -> str:
    """Return the name of a projection in the TOC; it differs by name, version and parameters."""
    salt = salt_of(projection.name, projection.version, projection.parameters)
    return f"{projection.name}/{projection.version}/{salt[:8].hex()}"
