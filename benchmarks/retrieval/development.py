"""The development sets of a folder, by name, and the embedders that they are measured with.

Owns the table of sets (`SETS`) and of embedders (`EMBEDDERS`). The files are those of the folder
``--data``; the code set needs no file. A set whose file is missing is left out with a notice.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from cerata.retrieval.embedders.built_in import built_in

from . import code_functions, conversations, cranfield, jsonl, xquad
from .judged_set import JudgedSet

LANGUAGES: Final = ("en", "zh", "th", "ar", "vi")

PLAIN: Final = "none"
"""The name of runs without an embedder."""

SETS: Final[dict[str, tuple[str, Callable[[Path], JudgedSet]]]] = {
    "locomo": (
        "locomo-dev.json",
        partial(
            conversations.load,
            name="locomo",
            categories=conversations.LOCOMO_CATEGORIES,
            tolerant=True,
        ),
    ),
    "friendsqa": ("friendsqa-dev.json", partial(conversations.load, name="friendsqa")),
    "qmsum": ("qmsum-val.json", partial(conversations.load, name="qmsum")),
    "beam": ("beam-dev.jsonl", jsonl.load),
    "cranfield": ("cranfield", cranfield.load),
    "code": ("", lambda _: code_functions.load()),
    **{f"xquad-{name}": (f"xquad/xquad.{name}.json", xquad.load) for name in LANGUAGES},
}
"""The file or folder and the loader of each judged set."""

FOLDERS: Final = {"folder": False, "folder-log": True}
"""The sets of a mixed folder: with its log, or without."""

EMBEDDERS: Final[dict[str, Callable[[], Any]]] = {
    PLAIN: lambda: None,
    "static": partial(built_in, "static"),
    "minilm": partial(built_in, "minilm"),
    "minilm-tokens": partial(built_in, "minilm-tokens"),
}
"""The function that makes each embedder; it raises `CerataError` if its extra is missing."""

DEFAULT_EMBEDDERS: Final = (PLAIN, "static", "minilm")
