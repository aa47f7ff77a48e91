"""The commands of `caucus-coordinator`, which set up, serve, plan, run and inspect a federation."""
