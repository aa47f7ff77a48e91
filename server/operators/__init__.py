"""Operators that methods share, such as selection and variation: post-processing without any privacy cost."""
