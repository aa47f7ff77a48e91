"""A hospital's page for the people who decide: plans, budget, limits, what runs now, and a release looked at."""
