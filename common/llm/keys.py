"""Keys of remote models: from the environment alone, never from a file or a setting."""

import os

from common.errors import ProviderError


def key_of(name: str, variable: str) -> str:
    """The key in an environment variable.

    Raises:
        ProviderError: There is none.
    """
    key = os.environ.get(variable)
    if not key:
        raise ProviderError(
            f"no key for the language model {name}",
            expected=f"the environment variable {variable}",
            got="nothing",
            do=f"export {variable}, or choose the embedded model, which needs none",
        )
    return key
