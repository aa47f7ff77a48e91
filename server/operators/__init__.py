"""Operators that methods share, such as selection and variation: pure post-processing, at no cost to privacy."""
