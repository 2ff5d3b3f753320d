"""Without its framework an integration names the extra, and the rest of Cerata works."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("extra", "module"),
    [
        ("langgraph", "langgraph.checkpoint.base"),
        ("anthropic", "anthropic.lib.tools"),
        ("google-adk", "google.adk.memory.base_memory_service"),
        ("langchain", "langchain_core.vectorstores"),
        ("otel", "opentelemetry.trace"),
        ("openai-agents", "agents.memory.session_settings"),
    ],
)
def test_a_missing_framework_is_unsupported_with_its_extra(extra: str, module: str) -> None:
    """An ImportError would name a module that the user never heard of."""
    package = extra.replace("-", "_")
    program = f"""
import sys
sys.modules[{module.partition(".")[0]!r}] = None
import cerata
with cerata.open(":memory:") as store:
    assert not len(store.stream.projection("langgraph").rows)
try:
    import cerata.integrations.{package} as found
    getattr(found, found.__all__[0])
except cerata.Unsupported as error:
    print(error.what, "|", error.remedy)
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout == (
        f"cerata.integrations.{package} needs {module}, which is not installed | "
        f"Run pip install '.[{extra}]' in a checkout of Cerata.\n"
    )
