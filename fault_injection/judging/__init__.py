"""Judges: the model and the oracle that decide whether a recovered state keeps the promises."""
