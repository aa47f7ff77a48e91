"""Access control of the page: a `Door` in front of all routes, so that no route can bypass it.

The `page` commands bind 127.0.0.1, or an address with a certificate and a password (`address.py`), and print a link
once. The first browser that opens the link within `LINK_LIFE`, with the password if there is one, gets a session: a
cookie that no script can read (HttpOnly), that no other site's link or form sends (SameSite=Strict), and that expires
after `SESSION_LIFE` or when the person logs out. Browsers send the cookies of an address to all of its ports, where
another user's server could collect them. So the pages are served under a path of random letters, to which alone the
cookie is sent. Nor can such a server lock users out with a cookie of its own: the cookie's name contains the port, and
of several cookies with this name any may be the correct one. Each request is checked in this order:

1. `Host` is exactly ours: a foreign name that resolves to 127.0.0.1 is rejected.
2. The method is GET, which changes nothing, or POST.
3. For the link, its token is correct, unused and not too old; all other paths require the cookie of an active session.
   After `MOST_TRIES` wrong passwords the link stops working. In the browser that has the session, the used link leads
   to the page.
4. A POST has exactly our `Origin`, a form of a known kind and bounded size, and the session's own form token. A file is
   sent as raw bytes with the token in a header. It is accepted only at paths that expect a file, and the route limits
   its size.

Each response forbids scripts, frames, foreign content and caching, except for the page's own script file, if it has one
(`SCRIPTED`), and for a report's script, in a sandbox (`SANDBOXED`). Every rejected request of a browser gets the same
page, so that it does not reveal which routes exist.
"""

import hmac
import secrets
import time
from collections.abc import Callable, Collection, Iterator
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from common.page.address import HTTPS

LINK_LIFE = 600.0
"""Seconds within which the link must be opened."""
SESSION_LIFE = 8 * 3600.0
"""Duration of a session in seconds: a working day."""
LARGEST_FORM = 2**16
"""Maximum size, in bytes, of a form, which contains a decision, its reason, or the names of two files."""
MOST_FIELDS = 20
MOST_TRIES = 5
"""Number of wrong passwords after which the link stops working."""
FORM_TOKEN = "form_token"  # noqa: S105 the name of a form's field
TOKEN_HEADER = "x-form-token"  # noqa: S105 the name of a header
FORM = "application/x-www-form-urlencoded"
BYTES = "application/octet-stream"

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",  # with no-referrer a browser hides the Origin of our own forms
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of each response."""
SCRIPTED = {
    "Content-Security-Policy": f"{HEADERS['Content-Security-Policy']}; script-src 'self'; connect-src 'self'",
}
"""Headers of a page with a script file of its own, which may send requests to the page's server."""
SANDBOXED = {
    "Content-Security-Policy": "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src "
    "'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "unsafe-none",  # the standard of HTML refuses a sandboxed document with another value
}
"""Headers of a response that is a report, in place of those above. The report becomes a page without an origin, which
has no cookie, cannot read our pages and cannot reach any address. The report's own policy allows its one style and one
script by hash."""


class Access:
    """The link's token and the one session of a running page.

    Args:
        host: Address and port, as a browser names them, such as "127.0.0.1:8470".
        password: Password that opens the page together with the link, over TLS; if it is empty, the link alone opens
            the page.
        clock: Function that returns monotonic time in seconds.
    """

    def __init__(self, host: str, *, password: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self.host = host
        self.asks_password = bool(password)
        self.origin = f"{'https' if password else 'http'}://{host}"
        self.root = f"/{secrets.token_hex(16)}"
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._password = password
        self._tries = 0
        self._token = secrets.token_urlsafe(32)
        self._link_ends = clock() + LINK_LIFE
        self._link_open = True
        self._cookie: str | None = None
        self._session_ends = 0.0
        self.cookie_name = f"caucus_{urlsplit(self.origin).port or HTTPS}"
        self.entrance = f"{self.root}/enter/"
        self.link = f"{self.origin}{self.entrance}{self._token}"

    def holds(self, token: str) -> bool:
        """Return whether the token is the link's, has not been used and has not expired."""
        return self._link_open and self._clock() < self._link_ends and _equal(token, self._token)

    def enter(self, token: str, password: str = "") -> str | None:
        """Return the cookie of a new session if the link is valid and the password is correct; otherwise None."""
        if not self.holds(token):
            return None
        if not _equal(password, self._password):
            self._tries += 1
            self._link_open = self._tries < MOST_TRIES
            return None
        self._link_open = False
        self._cookie = secrets.token_urlsafe(32)
        self._session_ends = self._clock() + SESSION_LIFE
        return self._cookie

    def knows(self, cookie: str) -> bool:
        """Return whether the cookie is the session's and the session has not ended."""
        return self._cookie is not None and _equal(cookie, self._cookie) and self._clock() < self._session_ends

    def returns(self, token: str, cookie: str) -> bool:
        """Return whether the browser that has this session opens the link again."""
        return _equal(token, self._token) and self.knows(cookie)

    def leave(self) -> None:
        """End the session; the link cannot start another one."""
        self._cookie = None

    def form_token(self, cookie: str) -> str:
        """Return the token that each form of this session contains, which a page of another origin cannot know."""
        return hmac.new(self._key, cookie.encode(), "sha256").hexdigest()


class Door:
    """The checks around all routes of the page.

    Args:
        app: The routes; they find the session's form token in `request.state.form_token`, and the checked fields of a
            form in `request.state.form`.
        access: The link's token and the session.
        render: Returns the body of a page from its template, in the browser's language.
        receives: Paths below the root that expect a file's bytes, which the route reads itself.
    """

    def __init__(self, app: ASGIApp, access: Access, *, render: Callable[..., str], receives: Collection[str]) -> None:
        self._app, self._access, self._render = app, access, render
        self._receives = {f"{access.root}{path}" for path in receives}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                policy = headers.get("content-security-policy")
                others = (known for known in (SANDBOXED, SCRIPTED) if known["Content-Security-Policy"] == policy)
                headers.update(HEADERS | next(others, {}))
            await send(message)

        request = Request(scope, receive)
        answer: ASGIApp
        try:
            answer = await self._entrance_answer(request) or self._app
        except HTTPException as refusal:
            answer = HTMLResponse(self._render(request, "refused.html"), refusal.status_code)
        await answer(scope, receive, headed)

    async def _entrance_answer(self, request: Request) -> Response | None:
        """Return the response to a request for the link; None for a request that may reach the routes.

        Raises:
            HTTPException: The request is rejected.
        """
        access, path = self._access, request.url.path
        if request.headers.getlist("host") != [access.host]:
            raise HTTPException(HTTPStatus.MISDIRECTED_REQUEST)
        if request.method not in {"GET", "POST"}:
            raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED)
        if path.startswith(access.entrance) and (request.method == "GET" or access.asks_password):
            return await self._enter(request, path.removeprefix(access.entrance))
        cookie = next(filter(access.knows, _cookies(request, access.cookie_name)), None)
        if cookie is None:
            raise HTTPException(HTTPStatus.FORBIDDEN)
        request.state.form_token = access.form_token(cookie)
        if request.method == "POST":
            self._check_origin(request)
            if path in self._receives and _media_type(request) == BYTES:
                given = request.headers.get(TOKEN_HEADER, "")
            else:
                await _read_form(request)
                given = request.state.form.pop(FORM_TOKEN, "")
            if not _equal(given, request.state.form_token):
                raise HTTPException(HTTPStatus.FORBIDDEN)
        return None

    async def _enter(self, request: Request, token: str) -> Response:
        access, password = self._access, ""
        if any(access.returns(token, cookie) for cookie in _cookies(request, access.cookie_name)):
            return self._entered(request)
        if not access.holds(token):
            raise HTTPException(HTTPStatus.FORBIDDEN)
        if access.asks_password:
            if request.method == "GET":
                return HTMLResponse(self._render(request, "password.html", wrong=False))
            self._check_origin(request)
            await _read_form(request)
            password = request.state.form.get("password", "")
        cookie = access.enter(token, password)
        if cookie is None and access.holds(token):
            return HTMLResponse(self._render(request, "password.html", wrong=True), HTTPStatus.FORBIDDEN)
        if cookie is None:
            raise HTTPException(HTTPStatus.FORBIDDEN)
        response = self._entered(request)
        response.set_cookie(
            access.cookie_name,
            cookie,
            max_age=int(SESSION_LIFE),
            path=f"{access.root}/",
            httponly=True,
            samesite="strict",
            secure=access.asks_password,
        )
        return response

    def _entered(self, request: Request) -> Response:
        # A link in a letter is another site's: after a redirect the browser would not send a strict cookie yet.
        body = self._render(request, "entered.html", root=self._access.root)
        return HTMLResponse(body, headers={"Refresh": f"0; url={self._access.root}/"})

    def _check_origin(self, request: Request) -> None:
        if request.headers.getlist("origin") != [self._access.origin]:
            raise HTTPException(HTTPStatus.FORBIDDEN)


async def _read_form(request: Request) -> None:
    """Store a form's fields in `request.state.form`; raise an HTTPException for another kind or a larger one."""
    if _media_type(request) != FORM:
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_FORM:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    try:
        fields = parse_qs(body.decode(errors="replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise HTTPException(HTTPStatus.BAD_REQUEST) from None
    request.state.form = {name: values[-1] for name, values in fields.items()}


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0]


def _cookies(request: Request, wanted: str) -> Iterator[str]:
    """Yield the values of all cookies with this name; Starlette itself keeps only the last one."""
    for header in request.headers.getlist("cookie"):
        for part in header.split(";"):
            name, _, value = part.strip().partition("=")
            if name == wanted:
                yield value


def _equal(given: str, known: str) -> bool:
    """Compare two strings in a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode(), known.encode())
