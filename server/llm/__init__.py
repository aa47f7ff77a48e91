"""Language models: requests, prompts, providers, cache, cleaning and spending."""
