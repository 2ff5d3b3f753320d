"""The query language: its parser and the limits of a query."""
