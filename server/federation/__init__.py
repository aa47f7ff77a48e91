"""The hospitals as the coordinator sees them; `ask.py` is the only way to private data."""
