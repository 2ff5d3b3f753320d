"""The development sets of a folder, by name, and the embedders that they are measured with.

Owns the table of sets (`SETS`, `FOLDERS`) and of embedders (`EMBEDDERS`). The files are those of
the folder ``--data``; the code set needs no file.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from cerata.retrieval.embedders.built_in import built_in

from . import code_functions, conversations, cranfield, jsonl, xquad
from .judged_set import JudgedSet

LANGUAGES: Final = ("en", "zh", "th", "ar", "vi")

PLAIN: Final = "none"
"""The name of runs without an embedder."""

TURN_TOKENS: Final = 500
PASSAGE_TOKENS: Final = 3_000
"""Long passages fit whole, so that no time goes into cutting them."""


class DevelopmentSet(NamedTuple):
    """A judged set: its file or folder, its loader, and the budget of its contexts."""

    path: str
    load: Callable[[Path], JudgedSet]
    tokens: int = PASSAGE_TOKENS


def _code(_: Path) -> JudgedSet:
    return code_functions.load()


SETS: Final[dict[str, DevelopmentSet]] = {
    "locomo": DevelopmentSet("locomo-dev.json", conversations.load_locomo, TURN_TOKENS),
    "friendsqa": DevelopmentSet(
        "friendsqa-dev.json", partial(conversations.load, name="friendsqa"), TURN_TOKENS
    ),
    "qmsum": DevelopmentSet("qmsum-val.json", partial(conversations.load, name="qmsum")),
    "beam": DevelopmentSet("beam-dev.jsonl", jsonl.load),
    "cranfield": DevelopmentSet("cranfield", cranfield.load),
    "code": DevelopmentSet("", _code),
    **{
        f"xquad-{language}": DevelopmentSet(f"xquad/xquad.{language}.json", xquad.load)
        for language in LANGUAGES
    },
}

FOLDERS: Final = {"folder": False, "folder-log": True}
"""The sets of a mixed folder: with its log, or without (`folder_set`)."""

EMBEDDERS: Final[dict[str, Callable[[], Any]]] = {
    PLAIN: lambda: None,
    "static": partial(built_in, "static"),
    "minilm": partial(built_in, "minilm"),
    "minilm-tokens": partial(built_in, "minilm-tokens"),
}
"""The function that makes each embedder; it raises `CerataError` if its extra is missing."""

DEFAULT_EMBEDDERS: Final = (PLAIN, "static", "minilm")
