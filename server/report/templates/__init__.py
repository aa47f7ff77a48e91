"""Jinja templates of the report pages, their style and their script, as Python strings."""
