"""Planning: the queries, cost and guarantee of a run, determined before any private data is accessed."""
