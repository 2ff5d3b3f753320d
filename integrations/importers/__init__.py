"""Importers: the records of other memories, each once.

`import_from` reads mem0, Graphiti, Chroma, JSON Lines and the sources of packs, and needs none of
their packages, except Chroma's for its vectors. Leaves out exports of Cerata, which
`interchange.import_facts` and `interchange.import_events` read.

Read first: `run`.
"""

from typing import TYPE_CHECKING

from cerata.engine.late import late_names

from .pack import kinds

if TYPE_CHECKING:
    from .records import Problem
    from .run import ImportedRecords, import_from

__all__ = ["ImportedRecords", "Problem", "import_from", "kinds"]

__getattr__ = late_names(
    __name__, {"ImportedRecords": "run", "Problem": "records", "import_from": "run"}
)
