"""Audit of the real pipeline: the noise, sensitivity and timing of answers, disclosures, and the effect of lies."""
