"""The commands of `caucus-party`, with which a hospital's folder is created, checked, started and inspected."""
