"""The commands of `caucus-coordinator`: a federation is set up, served, planned, run and looked at."""
