"""Models that write texts at a hospital, for the three kinds of queries that are answered with texts."""
