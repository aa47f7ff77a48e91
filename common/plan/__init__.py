"""The plan that both sides agree on before any private data is accessed: queries, noise, ε and δ."""
