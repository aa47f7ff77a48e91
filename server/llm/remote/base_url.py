"""What is probably wrong with the address of a server that does not answer as its protocol has it."""

import re
from typing import Any
from urllib.parse import urlsplit

_VERSION = re.compile(r"/v\d")
_TWICE = re.compile(r"/(v\d)/\1(?:/|$)")
_ENDS = ("/chat/completions", "/completions", "/messages", "/models")
_NO_PAGE = {301, 302, 307, 308, 404, 405}
_NO_TLS = ("wrong_version_number", "record layer failure", "packet length too long")
_ONLY_TLS = ("https port", "https server")


def url_tried(error: Any, *, default: str) -> str:
    """Return the address of the request that failed, without login, query and fragment; the default if unknown."""
    parts = urlsplit(str(getattr(getattr(error, "request", None), "url", "")))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.netloc else default


def likely_mistake(base_url: str | None, endpoint: str, error: BaseException) -> str:
    """Return advice on an address from which an error came; empty if nothing is wrong with it that can be seen.

    Args:
        base_url: The address in the settings; None for the provider's own.
        endpoint: What the SDK adds to it, such as /v1/messages.
        error: The error of the SDK, with the errors that caused it.
    """
    said, base = _said(error), (base_url or "").rstrip("/")
    if base.startswith("https:") and any(word in said for word in _NO_TLS):
        return "write http:// in base_url: the server speaks no TLS"
    if base.startswith("http:") and any(word in said for word in _ONLY_TLS):
        return "write https:// in base_url"
    no_page = getattr(error, "status_code", None) in _NO_PAGE or isinstance(error, ValueError)
    return _wrong_path(base, endpoint) if base and no_page else ""


def _wrong_path(base: str, endpoint: str) -> str:
    if added := next((added for added in (endpoint, *_ENDS) if base.endswith(added)), None):
        return f"leave {added} out of base_url: it is added"
    if _TWICE.search(base + endpoint):
        return "leave /v1 out of base_url: it is there twice"
    if not _VERSION.search(urlsplit(base + endpoint).path):
        return f"is /v1 missing in base_url, {base}/v1?"
    return ""


def _said(error: BaseException) -> str:
    """Return what an error, its body and its causes say, in lower case."""
    said, cause = "", error.__cause__ or error.__context__
    while cause is not None:
        said, cause = f"{said} {cause}", cause.__cause__ or cause.__context__
    return f"{error} {getattr(error, 'body', '')} {said}".lower()
