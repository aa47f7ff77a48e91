"""What a run will ask and cost, and what its guarantee says, before anything private is touched."""
