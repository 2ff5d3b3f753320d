# Where the extra otel is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""OpenTelemetry: spans of the calls of a store.

`trace` returns a store of the same file whose calls are spans, and whose events carry the trace.
Needs the API package alone; without an SDK no span is recorded (docs/opentelemetry.md).

Read first: `names`, then `tracing`.
"""

from typing import TYPE_CHECKING

from ..extras import names_with

if TYPE_CHECKING:
    from .tracing import TracedStore, TracedView, trace

__all__ = ["TracedStore", "TracedView", "trace"]

__getattr__ = names_with(
    __name__,
    "opentelemetry.trace",
    "otel",
    {"TracedStore": "tracing", "TracedView": "tracing", "trace": "tracing"},
)
