"""Without its framework an integration names the extra, and the rest of Cerata works."""

import subprocess
import sys


def test_a_missing_framework_is_unsupported_with_its_extra() -> None:
    """An ImportError would name a module that the user never heard of."""
    program = """
import sys
sys.modules["langgraph"] = None
import cerata
with cerata.open(":memory:") as store:
    assert not len(store.projection("langgraph").rows)
try:
    import cerata.integrations.langgraph
except cerata.Unsupported as error:
    print(error.what, "|", error.remedy)
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout == (
        "cerata.integrations.langgraph needs langgraph.checkpoint.base, which is not installed | "
        "Run: pip install 'cerata[langgraph]'\n"
    )
