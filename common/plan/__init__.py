"""The plan that both sides agree on before anything private is touched: queries, noise, ε and δ."""
