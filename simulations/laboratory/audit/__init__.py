"""Audit of the noise in the answers of the real pipeline."""
