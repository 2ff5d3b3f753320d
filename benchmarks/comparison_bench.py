"""Cerata beside SQLite, LanceDB and Chroma: the command `cerata bench`, from a checkout.

    python -m benchmarks.comparison_bench               # 1,000 and 10,000 documents, five rounds
    python -m benchmarks.comparison_bench --sizes 1000,10000,100000,1000000
    python -m benchmarks.comparison_bench --tiny        # some seconds

Takes the options of ``cerata bench``. SQLite needs the extra ``bench``, the other peers need the
extra ``peers``; a peer that is not installed is skipped with a line.
"""

import sys

from cerata.cli import main

if __name__ == "__main__":
    sys.exit(main(["bench", *sys.argv[1:]]))
