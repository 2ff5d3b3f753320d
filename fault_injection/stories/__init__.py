"""Stories: the operations that are crashed, interrupted and interleaved."""
