"""The switches of a profile: its lanes, its signals, and each further part that can be off.

Owns the rule by which a part of a profile is left out, for any field that a profile has:

- a map, such as ``weights``: a switch for each name with a weight; off, the map lacks the name;
- a number above 0: off is 0.

So a new signal of a profile is a switch without a change here. Name and version have no off state.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final, cast

from cerata import InvalidInput, Profile

FIXED: Final = frozenset({"name", "version"})
"""Fields that are no part of a ranking, or that always have a value."""


def switches(profile: Profile) -> list[str]:
    """Return the names of the parts of a profile that are on, in the order of its fields."""
    return [*_places(profile)]


def without(profile: Profile, *names: str) -> Profile:
    """Return a profile with some parts off, under a name that lists them.

    Raises:
        InvalidInput: the profile has no such part that is on, or no lane would run.
    """
    for name in names:
        places = _places(profile)
        if name not in places:
            raise InvalidInput(
                f"Profile {profile.label!r} has no lane or signal {name!r:.60} that is on",
                remedy=f"Use one of {', '.join(places)}.",
            )
        label = f"{profile.name} without {name}"
        profile = replace(profile, name=label, **_off(profile, *places[name]))
    return profile


def with_signals(profile: Profile, weights: Mapping[str, float]) -> Profile:
    """Return a profile with other weights of some signals, under a name that lists them.

    Raises:
        InvalidInput: there is no such signal, or a weight is out of range.
    """
    if not weights:
        return profile
    label = " ".join(f"{name} {weight:g}" for name, weight in weights.items())
    signals = {**profile.signals, **weights}
    return replace(profile, name=f"{profile.name} with {label}", signals=signals)


def _places(profile: Profile) -> dict[str, tuple[str, str | None]]:
    """Return the field of each part that is on, and its key if the field is a map."""
    places: dict[str, tuple[str, str | None]] = {}
    for field in fields(profile):
        if field.name in FIXED:
            continue
        value: object = getattr(profile, field.name)
        if isinstance(value, Mapping):
            for key, weight in cast("Mapping[str, object]", value).items():
                if weight:
                    name = key if key not in places else f"{field.name}.{key}"
                    places[name] = field.name, key
        elif value:
            places[field.name] = field.name, None
    return places


def _off(profile: Profile, field: str, key: str | None) -> dict[str, Any]:
    value: Any = getattr(profile, field)
    if key is not None:
        return {field: {name: weight for name, weight in value.items() if name != key}}
    return {field: type(value)(0)}
