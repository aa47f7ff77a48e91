"""The project's own prompts."""

from server.llm.render import our_prompts

render = our_prompts().render
