# Where the extra otel is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""OpenTelemetry: spans of the calls of a store.

`trace` returns a store of the same file whose calls are spans, and whose events carry the trace.
Needs the API package alone; without an SDK no span is recorded (docs/opentelemetry.md).

Read first: `names`, then `tracing`.
"""

from ..extras import require

require("opentelemetry.trace", "otel")

from .tracing import TracedStore, TracedView, trace  # noqa: E402

__all__ = ["TracedStore", "TracedView", "trace"]
