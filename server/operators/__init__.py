"""What methods share: selection, suppression, variation and the like; post-processing alone, at no cost to privacy."""
