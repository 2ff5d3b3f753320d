"""Options: their values, and the file of a verb and how it is opened.

A parser must not load the rooms that define names, so they are copied here as plain text;
tests/cli/test_startup.py compares each with the table of its room.
"""

from __future__ import annotations

import json
import os
import re
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, cast

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.late import late, loading
from cerata.engine.packs import saved_names

from .parser import did_you_mean
from .verbs import packs_named

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from typing import Any, Final

    from cerata.engine.events import JsonValue, ScopeValue
    from cerata.memory import store as memory_store
    from cerata.memory.store import Store
    from cerata.memory.values import options as value_options
    from cerata.memory.view import View
    from cerata.projections.frames.filters import Filter
    from cerata.retrieval.ranking.profile import Profile

    from .output import Output

else:
    memory_store = late("cerata.memory.store")
    value_options = late("cerata.memory.values.options")

DIRECTIONS: Final = ("out", "in", "both")
FACT_SOURCES: Final = ("observed", "inferred", "hypothesis", "synthetic")

LINK_KINDS: Final = (
    "assumes",
    "contradicts",
    "depends_on",
    "derived_from",
    "generated_from",
    "invalidates",
    "supersedes",
    "supports",
    "validated_by",
)

OBJECT_KINDS: Final = ("string", "entity", "number", "boolean", "time")
ORDERS: Final = ("score", "time")
POLICIES: Final = ("whole", "tiered")
PROFILES: Final = ("default", "words", "continuity", "used")

_KERNEL_PROJECTIONS: Final = (
    *("frames", "fulltext", "facts", "facttext", "links", "vectors", "tags", "access"),
    "embedders",
)
PROJECTIONS: Final = (*saved_names(_KERNEL_PROJECTIONS),)

_LOOKED_AT: Final = 2_000
"""Newest frames whose tags, kinds and roles a hint considers."""


def where_of(options: Namespace) -> Filter | None:
    """Return the filter of the options, or None."""
    from cerata.projections.frames.filters import Filter

    where = None
    if options.tag or options.kind or options.role or options.absent:
        # Imported here: 'cerata log' has no filter of frames.
        from cerata.projections.frames.filters import Filter

        where = Filter(
            tags=options.tag, kind=options.kind, role=options.role, absent=options.absent
        )
    if options.where is None:
        return where
    with loading("the query language"):
        from cerata.retrieval.query_language.parser import query_filter
    tests = query_filter(options.where)
    return tests if where is None else where & tests


def read_of(options: Namespace) -> Filter:
    """Return the filter of a read: with closed frames, and the times that a question names."""
    from cerata.projections.frames.filters import Filter

    given = vars(options)
    more = Filter(
        content=given.get("when"),
        include_superseded=given.get("superseded", False),
        include_deleted=given.get("deleted", False),
    )
    where = where_of(options)
    return more if where is None else where & more


def check_goes_with(partner: str, values: Mapping[str, object], *, is_passed: bool) -> None:
    """Raise `InvalidInput` for an option that would have no effect.

    Args:
        partner: the words with which the options below have an effect
        values: each of them, by its name in the help
        is_passed: if the words are passed
    """
    for name, value in values.items():
        if not (is_passed or value is None or value is False or value == []):
            raise InvalidInput(f"{name} goes with {partner}", remedy=f"Leave out {name}.")


def count_of(options: Namespace) -> int:
    """Return the number of items to print, by default 20. Raises `InvalidInput`."""
    count: int = 20 if options.n is None else options.n
    if not 0 < count <= sys.maxsize:
        raise InvalidInput(f"-n must be 1 or more, not {count}", remedy="Pass -n 1 or more.")
    return count


def hint(view: View, options: Namespace, output: Output) -> None:
    """After an empty result, name a filter that no frame passes, and the likely name."""
    filters = {"tag": list(options.tag), "kind": [options.kind], "role": [options.role]}
    if output.as_json or not any(value for values in filters.values() for value in values):
        return
    names: dict[str, set[str]] = {name: set() for name in filters}
    for frame in islice(view.frames(include_chunks=True), _LOOKED_AT):
        names["tag"].update(frame.tags)
        names["kind"].add(frame.kind)
        names["role"].update([frame.role] if frame.role else [])
    for name, values in filters.items():
        for value in values:
            if value and value not in names[name]:
                near = did_you_mean(value, names[name])
                meant = "" if near is None else f"; did you mean {near!r}?"
                output.warn(f"no recent frame has the {name} {value!r}{meant}")


def pairs_of(option: str, values: Sequence[str]) -> dict[str, JsonValue]:
    """Return the pairs of an option: ``name=text``, or ``name:=JSON`` for other values.

    Args:
        option: the option, named in errors.
        values: the option's values, one for each time that it was given.

    Raises:
        InvalidInput: a value has no "=", its JSON is invalid, or a name is given twice.
    """
    pairs: dict[str, JsonValue] = {}
    for text in values:
        name, sign, value = text.partition("=")
        is_json = name.endswith(":")
        name = name.removesuffix(":")
        if not sign or not name:
            raise InvalidInput(
                f"{option} must be NAME=VALUE, not {text!r}",
                remedy=f"Pass {option} NAME=VALUE, or {option} 'NAME:=JSON' for a number or list.",
            )
        if name in pairs:
            raise InvalidInput(
                f"{option} names {name!r} twice", remedy=f"Pass {option} {name}=… once."
            )
        if is_json:
            remedy = f"Pass JSON, such as {option} 'pages:=12', or a text after '='."
            pairs[name] = json_of(value, f"{option} {text!r} is not valid JSON after ':='", remedy)
        else:
            pairs[name] = value
    return pairs


def json_of(text: str, fault: str, remedy: str) -> JsonValue:
    """Return the value of a JSON text; else raise `InvalidInput` with the fault and its place."""
    try:
        decoded: JsonValue = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{fault} ({error})", remedy=remedy) from error
    return decoded


def scope_of(options: Namespace) -> dict[str, ScopeValue] | None:
    """Return the scope of the options, or None; the store checks the types of its values."""
    pairs = pairs_of("--scope", options.scope)
    return cast("dict[str, ScopeValue]", pairs) if pairs else None


_NEVER = "never"


def expiry_of(text: str | None) -> datetime | None:
    """Return the time that --expires names, such as "in 2 hours"; a day's 00:00 UTC; None: "never".

    Raises:
        InvalidInput: the text is no time.
    """
    from cerata.engine.disk.environment import SystemClock
    from cerata.projections.columnar.relative_times import interval_of
    from cerata.projections.columnar.times import to_datetime

    if text is None or text == _NEVER:
        return None
    return to_datetime(interval_of(text, to_datetime(SystemClock().now_us())).start)


_SIZE_MAX: Final = 1 << 20
"""Far more than any profile."""


def profile_from(value: str | None) -> str | Profile | None:
    """Return the profile of a file, or a name unchanged; a file's name has a "." or a "/".

    Raises:
        NotFound: the file does not exist.
        InvalidInput: the file is no profile.
    """
    from cerata.retrieval.ranking.profile import Profile

    if value is None or not ("/" in value or Path(value).suffix == ".json"):
        return value
    from .files import opened_input

    remedy = "Pass the name of a profile, or a file that 'cerata admin tune --to' wrote."
    with opened_input(value, remedy) as (file, _):
        data = file.read(_SIZE_MAX + 1)
    try:
        if len(data) > _SIZE_MAX:
            raise InvalidInput("The file is too large for a profile", where=value, remedy=remedy)
        return Profile.from_dict(json.loads(data))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidInput):
            raise InvalidInput(
                error.what, where=f"{value}, {error.where}", remedy=error.remedy
            ) from error
        raise InvalidInput(f"The file is not JSON: {error}", where=value, remedy=remedy) from error


DEFAULT_FILE: Final = "memory.cera"
"""The file that a writing verb creates if none is named or present."""

_TOUR: Final = re.compile(r"tour(-\d+)?\.cera")
"""Files of tours: a user's notes must not end up in a file that a tour left here."""


def file_of(options: Namespace, *, default: str | None = None) -> str:
    """Return the file of a verb.

    Raises:
        NotFound: no file was named, and this folder has none or several.
    """
    chosen: str | None = options.file or os.environ.get("CERATA_FILE") or None
    if chosen:
        return chosen
    names = sorted(str(path) for path in Path().glob("*.cera"))
    here = [name for name in names if not _TOUR.fullmatch(name)]
    if len(here) == 1:
        return here[0]
    if not here and default is not None:
        return default
    exception = " (a tour's does not count)" if len(here) < len(names) else ""
    fault = f"There are {len(here)} *.cera files here" if here else "There is no *.cera file here"
    raise NotFound(
        fault + exception, where=_folder(), remedy="Name a file with -f FILE or $CERATA_FILE."
    )


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed under us
        return "this folder"


def actor_of(options: Namespace) -> str | None:
    """Return the name of the writer: ``--actor``, else $CERATA_ACTOR, else None."""
    return vars(options).get("actor") or os.environ.get("CERATA_ACTOR") or None


def embedder_of(options: Namespace) -> str | None:
    """Return the name of ``--embedder``, of a verb that has it; None for the remembered one."""
    name: str | None = getattr(options, "embedder", None)
    return name


def _opened(path: str, options: Namespace, **named: Any) -> Store:
    """Open a store as `cerata.open` does; its modules are loaded when the verb uses them."""
    from cerata.memory.resident_modules import loading_late

    with loading_late():
        return memory_store.open_store(
            path,
            scope=scope_of(options),
            environment=options.environment,
            packs=packs_named(options.pack),
            options=value_options.OpenOptions(
                shared=options.shared, lock_timeout=options.lock_timeout
            ),
            **named,
        )


def reading(options: Namespace) -> Store:
    """Open the file for reading; nothing is written or created."""
    return _opened(file_of(options), options, mode="r", embedder=embedder_of(options))


def writing(options: Namespace, output: Output) -> Store:
    """Open the file for writing, or create it; warn if its newest events may be missing."""
    store = _opened(
        file_of(options, default=DEFAULT_FILE),
        options,
        actor=actor_of(options),
        embedder=embedder_of(options),
    )
    if store.report.bad_witnesses or store.report.ambiguous_tail:
        # Opening to write repairs both, so no later command can report them.
        output.warn(
            f"{store.path} was not closed, and the end of its log is damaged: its newest events "
            f"may be missing. It ends at event {store.head.seq:,}."
        )
    return store


def changing(options: Namespace, output: Output) -> Store:
    """Open an existing file for writing."""
    reading(options).close()
    return writing(options, output)


def planning(options: Namespace) -> Store:
    """Open the file of `writing` without writing: a missing file is empty."""
    if Path(file_of(options, default=DEFAULT_FILE)).exists():
        return reading(options)
    return _opened(":memory:", options)


def view_of(store: Store, options: Namespace) -> View:
    """Return the view at ``--at``, by default the newest."""
    return store.at("HEAD" if options.at is None else options.at)
