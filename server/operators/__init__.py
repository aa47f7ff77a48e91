"""Operators that methods share, such as selection and variation: post-processing alone, at no cost to privacy."""
