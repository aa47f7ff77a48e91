"""Real nodes of many hospitals on one machine: their cost, and their behaviour under failures."""
