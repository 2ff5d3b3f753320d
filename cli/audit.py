"""The verb that prints who changed the memory, when, and on whose request: audit."""

from argparse import Namespace

from cerata.engine.loading import loading
from cerata.memory.frames.event_summary import type_of_act

from .output import Output
from .store_options import file_of, reading, view_of


def run_audit(options: Namespace, output: Output) -> int:
    """Print the changes, oldest first, in blocks of batches; with ``--markdown`` as a page."""
    with reading(options) as store:
        audit = view_of(store, options).audit(
            type=None if options.type is None else type_of_act(options.type),
            actor=options.actor,
            correlation=options.correlation,
            causation=options.causation,
            since=options.since,
            until=options.until,
        )
        with output.pages():
            for line in (audit.markdown if options.markdown else str(audit)).splitlines():
                output.line(line, wraps=not options.markdown)
        answer = audit.to_dict()
        if options.html is not None:
            with loading("the pages"):
                from .html_pages import audit_page
                from .output_files import write_page

            write_page(options.html, audit_page(audit), file_of(options))
            output.line(f"page: {options.html}", style="dim")
            answer["html"] = options.html
        output.result(answer, items="entries")
    return 0
