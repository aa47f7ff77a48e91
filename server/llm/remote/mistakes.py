"""What is wrong in a model's settings, as its server's errors tell: a parameter that it refuses, or the address."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

SETTING = "llm.models.NAME"
"""Section of a model's settings in advice; `NAME` stands for the name of the model."""

_SHORTER = f"a smaller {SETTING}.max_tokens"
_NOT_SENT = "a gateway before the model that does not add it, since Caucus does not send it"

ADVICE: Mapping[str, str] = {
    "top_p": f"{SETTING}.top_p=null",
    "temperature": f"{SETTING}.temperature=false, or {SETTING}.max_temperature=1 if it is only too high",
    "seed": f"{SETTING}.seed=false",
    "max_completion_tokens": f"{SETTING}.length_field=max_tokens",
    "max_tokens": f"{SETTING}.length_field=max_completion_tokens",
    "cache_control": f"{SETTING}.prompt_caching=false",
    "system": f"{SETTING}.system_role=false",
    "response_format": _NOT_SENT,
    "stop": _NOT_SENT,
}
"""What to use instead of each parameter that a server may refuse."""

_TOO_LARGE = re.compile(r"too large|too high|maximum|at most|exceed|less than|> ?\d")
_REFUSES = re.compile(
    r"unsupported|support|permitted|allowed|unknown|unrecogni[sz]ed|unexpected|extra|invalid|range|cannot|must be|"
    r"not enabled|disabled|too (?:large|high)|less than|greater than|> ?\d"
)
# A word of common language counts only in quotation marks, before a colon, or where parameters are listed: the message
# may quote the prompt.
_NAMED = {name: re.compile(rf"(?<![a-z_]){name}(?![a-z_])") for name in ADVICE if "_" in name} | {
    name: re.compile(rf"[\"'`]{name}[\"'`]|^(?:body\.)?{name}\b|parameters?:? [\"'`]?{name}\b")
    for name in ADVICE
    if "_" not in name
}
_SYSTEM_ROLE = re.compile(
    r"(?:system|developer) (?:role|message|prompt|instruction)s?\b.{0,20}\bnot (?:\w+ )?(?:support|enabled|allowed)"
)
_FIRST = ("top_p", "cache_control")
_ROLE = re.compile(r"messages.*role")

_VERSION = re.compile(r"/v\d")
_TWICE = re.compile(r"/(v\d)/\1(?:/|$)")
_ENDS = ("/chat/completions", "/completions", "/messages", "/models")
_NO_PAGE = {301, 302, 307, 308, 404, 405}
_NO_TLS = ("wrong_version_number", "record layer failure", "packet length too long")
_ONLY_TLS = ("https port", "https server")


def refused_parameter(error: object) -> str | None:
    """Return the parameter, a key of `ADVICE`, that the body of an SDK's error names as refused; None if there is none.

    Both families of servers are read: OpenAI's `param`, the list of places in FastAPI's `detail`, and messages.
    """
    body = getattr(error, "body", None)
    body = body if isinstance(body, dict) else {}
    body = body["error"] if isinstance(body.get("error"), dict) else body
    message = message_in(body).lower()
    if _SYSTEM_ROLE.search(message):
        return "system"
    param = str(body.get("param") or "").lower()
    if param in ADVICE:
        return param
    if _ROLE.match(param) and "system" in message:
        return "system"
    details = body.get("detail")
    for detail in details if isinstance(details, list) else ():
        place = detail.get("loc") if isinstance(detail, dict) else None
        if isinstance(place, list) and place and place[-1] in ADVICE:
            return str(place[-1])
    if not _REFUSES.search(message):
        return None
    places = {name: match.start() for name, named in _NAMED.items() if (match := named.search(message))}
    # Where top_p and temperature exclude each other, the temperature is worth more; cache_control stands in `system`.
    return next((name for name in _FIRST if name in places), min(places, key=places.__getitem__, default=None))


def parameter_advice(parameter: str, error: object) -> str:
    """Return what to use instead of a refused parameter: a setting of ours, with `NAME` for the name of the model."""
    body: Any = getattr(error, "body", None)
    if parameter in ("max_tokens", "max_completion_tokens") and _TOO_LARGE.search(message_in(body).lower()):
        return _SHORTER
    return ADVICE[parameter]


def message_in(body: object) -> str:
    """Return the message of an error in the body of an answer; empty if there is none. It may quote the prompt."""
    if isinstance(body, dict) and isinstance(body.get("error"), (dict, str)):
        body = body["error"]
    words = body.get("message") or body.get("detail") if isinstance(body, dict) else body
    return " ".join(str(words or "").split())


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
