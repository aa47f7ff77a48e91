"""Language models on other machines: Anthropic's, OpenAI's and compatible servers."""
