"""Encoders and checkpoints that both sides load from their own disks, and the catalogue of those to be fetched."""
