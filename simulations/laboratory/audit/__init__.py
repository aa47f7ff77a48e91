"""Audit of the real pipeline: noise, sensitivity and timing of answers, disclosures, and effect of a lying party."""
