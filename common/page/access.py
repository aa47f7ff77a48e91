"""Who may see the page: a door before all routes, so that no route can be without it.

`caucus-party page` and `caucus-coordinator page` bind 127.0.0.1 alone and print one link, once. The first browser that
opens it within `LINK_LIFE` gets a session: a cookie that no script can read (HttpOnly), that no other site's link or
form sends (SameSite=Strict), and that ends after `SESSION_LIFE` or when the person logs out. Browsers send the cookies
of an address to all of its ports, so that another user of this machine could collect them with a server of their own:
the pages therefore stand under a path of random letters, and the cookie is sent there only. Nor can such a server lock
the page by a cookie of its own: the name has the port, and of several cookies of this name any may be the right one.
Each request is checked in this order:

1. `Host` is exactly ours: a name of somebody else's that leads to 127.0.0.1 is refused.
2. The method is GET, which changes nothing, or POST.
3. The link's token is right, not used yet and not too old; all other paths need the cookie of a living session.
4. A POST has exactly our `Origin`, a form of a known kind and bounded size, and the session's own form token.

Each response forbids scripts, frames, foreign content and caching; a report alone may run its script, in a sandbox
(`SANDBOXED`). A refusal is the same page for all requests of a browser, so that it tells nobody which routes there are.
"""

import hmac
import secrets
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LINK_LIFE = 600.0
"""Seconds in which the link has to be opened."""
SESSION_LIFE = 8 * 3600.0
"""Seconds that a session lasts: a working day."""
LARGEST_FORM = 2**16
"""Largest number of bytes of a form: a decision, its reason, or the names of two files."""
MOST_FIELDS = 20
FORM_TOKEN = "form_token"  # noqa: S105 the name of a form's field
FORM = "application/x-www-form-urlencoded"

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
SANDBOXED = {
    "Content-Security-Policy": "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src "
    "'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "unsafe-none",  # the standard of HTML refuses a sandboxed document with another value
}
"""Headers with which a route answers by a report, in place of those above: it becomes a page of no origin, which has no
cookie, can read no page of ours and reaches no address. By hash, its own policy allows its one style and script."""


class Access:
    """The link's token and the one session of a running page.

    Args:
        host: Address and port, as a browser names them, such as "127.0.0.1:8470".
        clock: Function that returns monotonic time in seconds.
    """

    def __init__(self, host: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.host = host
        self.origin = f"http://{host}"
        self.root = f"/{secrets.token_hex(16)}"
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._token: str | None = secrets.token_urlsafe(32)
        self._link_ends = clock() + LINK_LIFE
        self._cookie: str | None = None
        self._session_ends = 0.0
        self.cookie_name = f"caucus_{host.rpartition(':')[2]}"
        self.entrance = f"{self.root}/enter/"
        self.link = f"{self.origin}{self.entrance}{self._token}"

    def enter(self, token: str) -> str | None:
        """Return the cookie of a new session if the token is the link's, unused and not too old; otherwise None."""
        if self._token is None or self._clock() >= self._link_ends or not _equal(token, self._token):
            return None
        self._token = None
        self._cookie = secrets.token_urlsafe(32)
        self._session_ends = self._clock() + SESSION_LIFE
        return self._cookie

    def knows(self, cookie: str) -> bool:
        """Return whether the cookie is that of the session and the session has not ended."""
        return self._cookie is not None and _equal(cookie, self._cookie) and self._clock() < self._session_ends

    def leave(self) -> None:
        """End the session; the link does not begin another one."""
        self._cookie = None

    def form_token(self, cookie: str) -> str:
        """Return the token that each form of this session carries, which a page of another origin cannot know."""
        return hmac.new(self._key, cookie.encode(), "sha256").hexdigest()


class Door:
    """The checks around all routes of the page.

    Args:
        app: The routes; they find the session's form token in `request.state.form_token`, and the fields of a form,
            checked, in `request.state.form`.
        access: Token and session.
        refused: Makes the body of the page that a request without a session gets, in the browser's language.
        entered: Makes the body of the page that is shown while a browser enters.
    """

    def __init__(
        self, app: ASGIApp, access: Access, *, refused: Callable[[Request], str], entered: Callable[[Request], str]
    ) -> None:
        self._app = app
        self._access = access
        self._refused = refused
        self._entered = entered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                policy = Headers(raw=message["headers"]).get("content-security-policy")
                chosen = HEADERS | SANDBOXED if policy == SANDBOXED["Content-Security-Policy"] else HEADERS
                ours = {name.lower().encode(): value.encode() for name, value in chosen.items()}
                others = [(name, value) for name, value in message["headers"] if name not in ours]
                message["headers"] = [*others, *ours.items()]
            await send(message)

        request = Request(scope, receive)
        answer: ASGIApp = await self._refusal(request) or self._app
        await answer(scope, receive, headed)

    async def _refusal(self, request: Request) -> Response | None:
        """Check a request. Return the response to one that no route may see; None for any other."""
        access, path = self._access, request.url.path
        if request.headers.getlist("host") != [access.host]:
            return self._page(request, HTTPStatus.MISDIRECTED_REQUEST)
        if request.method not in {"GET", "POST"}:
            return self._page(request, HTTPStatus.METHOD_NOT_ALLOWED)
        if path.startswith(access.entrance) and request.method == "GET":
            return self._enter(request, path.removeprefix(access.entrance))
        cookie = next(filter(access.knows, _cookies(request, access.cookie_name)), None)
        if cookie is None:
            return self._page(request, HTTPStatus.FORBIDDEN)
        request.state.form_token = access.form_token(cookie)
        return await self._bad_form(request) if request.method == "POST" else None

    def _enter(self, request: Request, token: str) -> Response:
        cookie = self._access.enter(token)
        if cookie is None:
            return self._page(request, HTTPStatus.FORBIDDEN)
        # A link in a letter is another site's: after a redirect the browser would not send a strict cookie yet.
        root = self._access.root
        response = HTMLResponse(self._entered(request), headers={"Refresh": f"0; url={root}/"})
        response.set_cookie(
            self._access.cookie_name,
            cookie,
            max_age=int(SESSION_LIFE),
            path=f"{root}/",
            httponly=True,
            samesite="strict",
        )
        return response

    async def _bad_form(self, request: Request) -> Response | None:
        """Check a form. Return the refusal of a wrong one; otherwise keep its fields for the route, and return None."""
        if request.headers.getlist("origin") != [self._access.origin]:
            return self._page(request, HTTPStatus.FORBIDDEN)
        if request.headers.get("content-type", "").partition(";")[0] != FORM:
            return self._page(request, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > LARGEST_FORM:
                return self._page(request, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        try:
            fields = parse_qs(body.decode(errors="replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
        except ValueError:
            return self._page(request, HTTPStatus.BAD_REQUEST)
        form = {name: values[-1] for name, values in fields.items()}
        if not _equal(form.pop(FORM_TOKEN, ""), request.state.form_token):
            return self._page(request, HTTPStatus.FORBIDDEN)
        request.state.form = form
        return None

    def _page(self, request: Request, status: HTTPStatus) -> Response:
        return HTMLResponse(self._refused(request), status)


def _cookies(request: Request, wanted: str) -> Iterator[str]:
    """Yield the values of all cookies of a name, of which Starlette knows the last one alone."""
    for header in request.headers.getlist("cookie"):
        for part in header.split(";"):
            name, _, value = part.strip().partition("=")
            if name == wanted:
                yield value


def _equal(given: str, known: str) -> bool:
    """Compare in a time that does not depend on where the two differ."""
    return hmac.compare_digest(given.encode(), known.encode())
