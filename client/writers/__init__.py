"""Models that write texts at a hospital, for the three queries whose answers are texts."""
