"""Encoders and checkpoints that both sides load from their own disks, and the catalogue of models to fetch."""
