"""Maintenance: diagnosis and repair of a file."""
