"""The language models that need no weights and no network."""
