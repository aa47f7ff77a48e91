"""Files of records that are refused, without a word of what they hold."""

import traceback

import pytest

from common.errors import DataError
from common.labelled_files import read_records

SECRET = "Zebulon"
"""A word of private text, which no message may hold."""


def refused(path, what=None, *args, read=read_records, **settings):
    """Check that a file is refused with this message, and that neither message nor traceback quotes the file.

    Return the error.
    """
    with pytest.raises(DataError, match=what) as caught:
        read(path, *args, **settings)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert not isinstance(caught.value.__context__, ValueError)  # a decoder's error would carry the file
    return caught.value
