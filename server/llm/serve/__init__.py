"""A small server of OpenAI's protocol over the engines of `server.llm.engines`: `python -m server.llm.serve MODEL`."""
