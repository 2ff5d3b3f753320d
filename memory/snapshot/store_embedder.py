"""The embedder of a store: the embedder passed to `open`, else the one that the memory remembers.

With "auto" in place of an embedder, a memory that remembers none uses the static embedder.

A remembered embedder is used only if it is a built-in, its extra is installed, and its spaces are
the remembered spaces. Every built-in runs on this machine, so a file causes no request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from cerata.engine.errors import Unsupported
from cerata.engine.late import late

if TYPE_CHECKING:
    from cerata.projections.rows.built_in import Used
    from cerata.retrieval.embedders import built_in
    from cerata.retrieval.embedders.embedder import Embedder
else:
    built_in = late("cerata.retrieval.embedders.built_in")


AUTO: Final = "auto"
"""In place of an embedder: the remembered one, else the static one (`automatic`)."""

Choice: TypeAlias = "Embedder | Literal['auto'] | None"


class StoreEmbedder:
    """The choice of a store's embedder; all snapshots of a store share the loaded models."""

    def __init__(self, choice: Choice = None) -> None:
        self.choice: Final = choice
        self.passed = None if isinstance(choice, str) else choice
        """The embedder passed to `open`; None without one, or for "auto"."""
        self._made: dict[str, Embedder] = {}

    def of(self, used: Used | None) -> Embedder | None:
        """Return the embedder of a state; None if it has none that can be used here."""
        if self.passed is not None:
            return self.passed
        if used is None and isinstance(self.choice, str):
            return self._automatic()
        made = None if used is None else self._built_in(used.name)
        if used is None or made is None or isinstance(made, Unsupported):
            return None
        return made if built_in.spaces_of(made) == used.spaces else None

    def obstacle(self, used: Used | None) -> str | None:
        """Return why the vectors of a state cannot be used for a text; None if they can."""
        if used is None:
            return None
        lead = f"the vectors are of {used.space!r}, "
        if self.passed is not None:
            if built_in.spaces_of(self.passed) == used.spaces:
                return None
            space = self.passed.identity.space
            return f"{lead}not of the store's {space!r}; embeddings.fill() adds vectors of this"
        made = self._built_in(used.name)
        if isinstance(made, Unsupported):
            return f"{lead}and {made.what[0].lower()}{made.what[1:]}; {made.remedy}"
        if made is None:
            return f"{lead}which is no built-in embedder; pass it to open(embedder=…)"
        if built_in.spaces_of(made) != used.spaces:
            return f"{lead}another version of {used.name!r}; embeddings.fill() adds new vectors"
        return None

    def _automatic(self) -> Embedder | None:
        made = self._built_in(built_in.AUTOMATIC)
        return None if isinstance(made, Unsupported) else made

    def _built_in(self, name: str | None) -> Embedder | Unsupported | None:
        if name is None or name not in built_in.BUILT_IN:
            return None
        made = self._made.get(name)
        if made is None:
            try:
                made = built_in.BUILT_IN[name]()
            except Unsupported as error:
                # Not kept: the extra may be installed while the store is open.
                return error
            self._made[name] = made
        return made
