"""Remember folders, then print the best file for each question, with the lines that match.

python examples/folder_search.py --in notes --in docs "how do I reset the password?" "who pays?"
"""

import argparse
from pathlib import Path

import cerata


def best_files(store: cerata.Store, question: str, count: int = 3) -> list[cerata.Hit]:
    """Return the best hit of each of the best files."""
    return store.search(question, k=count, page=cerata.Page(group_by="document"))


def main() -> None:
    """Answer the questions of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("questions", nargs="+")
    parser.add_argument("--in", action="append", default=[], dest="folders", type=Path)
    parser.add_argument("--memory", default="folders.cera")
    options = parser.parse_args()
    with cerata.open(options.memory) as store:
        done = store.files.remember(options.folders)  # unchanged files cost a hash
        print(f"{len(done.of('added'))} files added, {len(done.of('unchanged'))} unchanged")
        for question in options.questions:
            print(question)
            for hit in best_files(store, question):
                start = hit.text.rfind("\n", 0, hit.span[0]) + 1
                line = hit.text[start:].partition("\n")[0].strip()
                print(f"  {hit.frame.uri}: {line}")


if __name__ == "__main__":
    main()
