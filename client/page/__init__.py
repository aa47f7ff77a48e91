"""A hospital's page for the people who decide: plans, budget, limits, current status, and the audit of a release."""
