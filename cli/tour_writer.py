"""The child that the tour kills: it writes frames and names each once it is durable."""

import sys

import cerata


def main() -> None:
    """Write to the file named on the command line until killed."""
    with cerata.open(sys.argv[1]) as store:
        for number in range(1_000_000):
            text = f"Note {number} of a writer that will be killed."
            store.put_frame(text, kind="tour")
            # Only now may anybody rely on it: put_frame returns when it is on disk.
            print(text, flush=True)


if __name__ == "__main__":
    main()
