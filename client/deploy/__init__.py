"""The commands of `caucus-party`, which create, check, approve, start and inspect a hospital's folder."""
