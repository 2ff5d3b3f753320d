"""The verb put: a text becomes a frame."""

import sys
from argparse import Namespace

from cerata.engine.errors import InvalidInput, StorageFailed
from cerata.engine.limits import STRING_SIZE_MAX

from .expiry import expiry_of
from .output import Output
from .pair_options import pairs_of
from .store_options import writing

INPUT = "-"
"""The path or text that means standard input."""


def read_input() -> bytes:
    """Return the bytes of standard input.

    Raises:
        StorageFailed: a read failed.
        InvalidInput: standard input is closed.
    """
    if sys.stdin is None:
        raise InvalidInput("Standard input is closed", remedy="Pass a file.")
    try:
        # One byte more than allowed, to detect an excess without reading all of the input.
        return sys.stdin.buffer.read(STRING_SIZE_MAX + 1)
    except OSError as error:
        raise StorageFailed(
            f"Cannot read: {error.strerror}",
            where="input",
            remedy="Check the pipe, or pass a file.",
        ) from error


def _input_text() -> str:
    """Return the text of standard input, without the line end that ``echo`` adds.

    Raises:
        StorageFailed: a read failed.
        InvalidInput: standard input is closed, or is no UTF-8.
    """
    try:
        text = read_input().decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"Standard input is not UTF-8: {error.reason} at byte {error.start}",
            remedy="Convert it, for example with iconv; 'cerata remember FILE' reads PDF and HTML.",
        ) from error
    return text.removesuffix("\n")


def run_put(options: Namespace, output: Output) -> int:
    """Store a text, and print its id."""
    text = _input_text() if options.text == [INPUT] else " ".join(options.text)
    if not text.strip():
        raise InvalidInput("The text is empty", remedy="Pass at least one word.")
    metadata = pairs_of("--metadata", options.metadata)
    with writing(options, output) as store:
        receipt = store.put_frame(
            text,
            kind=options.kind,
            role=options.role,
            title=options.title,
            tags=options.tag,
            labels=options.label,
            metadata=metadata,
            track=options.track,
            uri=options.uri,
            replace=options.replace,
            content_dates=options.date or None,
            expires=expiry_of(options.expires),
        )
        for notice in receipt.notices:
            output.warn(notice)
        was = f" (was {', '.join(f'#{old}' for old in receipt.replaced)})"
        output.line(f"frame {receipt.id} in {store.path}{was if receipt.replaced else ''}")
        output.result({"file": store.path, **receipt.to_dict()})
    return 0
