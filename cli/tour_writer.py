"""The child process that the tour kills: it writes frames, and prints each once it is durable."""

import sys

import cerata


def main() -> None:
    """Write to the file named on the command line until killed."""
    with cerata.open(sys.argv[1]) as store:
        for number in range(1_000_000):
            text = f"Note {number} of a writer that will be killed."
            store.put_frame(text, kind="tour")
            # put_frame has returned, so the frame is on disk: acknowledge it only now.
            print(text, flush=True)


if __name__ == "__main__":
    main()
