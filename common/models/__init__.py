"""Encoders and checkpoints that both sides load from their own disks."""
