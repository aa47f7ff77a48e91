"""The hospitals as the coordinator sees them; only `ask.py` reaches private data."""
