"""Audit of the real pipeline: noise, sensitivity and timing of answers, disclosures, the effect of a lying party."""
