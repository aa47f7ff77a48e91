"""Real processes of many hospitals on one machine: what a run costs, and what happens if hospitals fail."""
