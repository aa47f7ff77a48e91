"""Planning: questions, cost and guarantee of a run, determined before anything private is touched."""
