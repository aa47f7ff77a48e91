"""A hospital's page for the people who decide: plans, budget, limits, what runs now, and the audit of a release."""
