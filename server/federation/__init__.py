"""The hospitals as the coordinator sees them; `ask.py` is the only door to private data."""
