"""The commands of `caucus-party`: a folder is made, checked, approved, started and looked at."""
