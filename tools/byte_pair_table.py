"""Writes the table of `byte_pairs.py`: the tokens of cl100k_base, from the package toktok.

Run::

    python -m tools.byte_pair_table retrieval/cl100k_base.table

The ranks are OpenAI's (tiktoken, MIT licence); tests/retrieval/test_tokenizer.py compares them with
the published file. Prints `byte_pairs._TABLE_CHECK`.
"""

import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, cast

import toktok

from cerata.retrieval.tokenizer import packed


class _Encoding(Protocol):
    def token_byte_values(self) -> list[bytes]: ...


def main() -> None:
    """Write the table, and print its check."""
    encoding = cast("Callable[[str], _Encoding]", vars(toktok)["_encoding"])("cl100k_base")
    table = packed(encoding.token_byte_values())
    Path(sys.argv[1]).write_bytes(table)
    sys.stdout.write(f"0x{zlib.crc32(table):08X}\n")


if __name__ == "__main__":
    main()
