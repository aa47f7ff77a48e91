"""Whole federations on one machine, by the code of hospitals and coordinator, and their comparison with papers."""
