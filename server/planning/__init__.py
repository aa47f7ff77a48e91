"""Planning: a run's questions, cost and guarantee, known before anything private is touched."""
