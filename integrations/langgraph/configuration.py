# Where the extra langgraph is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""Configurations of LangGraph: the place of a checkpoint in a config, and back.

Owns the checks of a config's thread, namespace and id.
"""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from langchain_core.runnables import RunnableConfig

from cerata.engine.errors import InvalidInput

from .threads import Place

_Default = TypeVar("_Default", str, None)

_REMEDY = "Pass {'configurable': {'thread_id': 'name', …}}."


def _configurable(config: RunnableConfig) -> Mapping[str, Any]:
    values: object = config.get("configurable") if isinstance(config, Mapping) else None
    if not isinstance(values, Mapping):
        raise InvalidInput(f"A config has no 'configurable': {config!r:.60}", remedy=_REMEDY)
    return cast("Mapping[str, Any]", values)


def text_of(value: object, name: str) -> str:
    """Return an id as text; LangGraph accepts whole numbers. Raises `InvalidInput`."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidInput(f"{name} must be a text, not {value!r:.60}", remedy="Pass a str.")
    try:
        return str(value).encode().decode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{name} is not valid Unicode: {error.reason}",
            remedy="Decode it with errors='replace'.",
        ) from error


def thread_of(config: RunnableConfig) -> str:
    """Return the thread of a config. Raises `InvalidInput`."""
    values = _configurable(config)
    if values.get("thread_id") is None:
        raise InvalidInput("A config has no thread_id", remedy=_REMEDY)
    return text_of(values["thread_id"], "thread_id")


def ns_of(config: RunnableConfig, default: _Default) -> str | _Default:
    """Return the namespace of a config, or the default. Raises `InvalidInput`."""
    ns = _configurable(config).get("checkpoint_ns")
    return default if ns is None else text_of(ns, "checkpoint_ns")


def place_in(config: RunnableConfig) -> Place:
    """Return the checkpoint that a config names. Raises `InvalidInput`."""
    checkpoint_id = _configurable(config).get("checkpoint_id")
    if checkpoint_id is None:
        raise InvalidInput(
            "A config has no checkpoint_id", remedy="Pass the config that put returned."
        )
    return Place(thread_of(config), ns_of(config, ""), text_of(checkpoint_id, "checkpoint_id"))


def config_of(place: Place) -> RunnableConfig:
    """Return the config that names a checkpoint."""
    return {
        "configurable": {
            "thread_id": place.thread,
            "checkpoint_ns": place.ns,
            "checkpoint_id": place.checkpoint_id,
        }
    }
