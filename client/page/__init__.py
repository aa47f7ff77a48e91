"""A hospital's page for the people who decide: plans, budget, limits, present status, and the audit of a release."""
