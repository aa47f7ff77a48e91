"""The built-in language models, which need no weights and no network."""
