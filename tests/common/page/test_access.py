"""Nobody sees or does anything without the link, the session, our own name and the form's token: route by route."""

import pytest
from starlette.responses import Response
from starlette.routing import Mount, Route

from common.errors import ConfigError
from common.page import access as door
from common.page.render import LANGUAGE
from server.page import app as coordinator
from tests.support.browsing import HOST, Browser
from tests.support.flower import coordinated
from tests.support.hospital import operated


def of_coordinator(folder, monkeypatch):
    def planned(*_):
        raise ConfigError("a plan", got="none, for it takes seconds")

    monkeypatch.setattr(coordinator, "plan_draft", planned)
    monkeypatch.setattr(coordinator, "draft_facts", planned)
    return Browser(coordinated(folder, monkeypatch).folder, coordinator.coordinator_page)


PAGES = {"hospital": lambda folder, _: Browser(operated(folder)), "coordinator": of_coordinator}


@pytest.fixture(params=PAGES)
def opened(request, tmp_path, monkeypatch):
    """Make one of the pages, in a folder of this name."""
    return lambda name="page": PAGES[request.param](tmp_path / name, monkeypatch)


@pytest.fixture
def browser(opened):
    return opened()


def routes(browser):
    """Method and path of each route, as the application has them."""
    (mount,) = browser.app._app.routes
    assert isinstance(mount, Mount)
    found = [(method, route.path) for route in mount.routes for method in sorted(route.methods - {"HEAD"})]
    assert all(isinstance(route, Route) and "{" not in route.path for route in mount.routes)
    assert {method for method, _ in found} == {"GET", "POST"}
    found.sort(key=lambda each: each[1] == "/leave")  # after it every route is closed
    return [(method, f"{mount.path}{path}") for method, path in found]


def form_of(browser, method):
    """The form of a request with this method: for POST, with the session's own token."""
    return {door.FORM_TOKEN: browser.access.form_token(browser.cookie)} if method == "POST" else None


def is_refused(response, statuses=(403,)):
    """Whether it is the one page of all refusals, which sets no cookie."""
    refused = response.status_code in statuses and "This page is not open to you" in response.text
    return refused and "set-cookie" not in response.headers


def test_each_route_is_closed_without_with_an_old_and_with_a_wrong_session(browser):
    for method, path in routes(browser):
        form = form_of(browser, method)
        for cookie in ("", "wrong", browser.access.link.rpartition("/")[2]):
            assert is_refused(browser.ask(method, path, cookie=cookie, form=form))
        assert is_refused(browser.ask(method, path, headers={"cookie": None}, form=form))
    browser.enter()
    for time in (door.SESSION_LIFE, door.SESSION_LIFE - 1):  # at the end the person logs out
        browser.clock.now = time
        for method, path in routes(browser):
            refused = is_refused(browser.ask(method, path, form=form_of(browser, method)))
            assert refused == (time == door.SESSION_LIFE)


def test_each_route_is_closed_once_the_person_has_logged_out(browser):
    browser.enter()
    assert "Log out" in browser.get().text
    assert is_refused(browser.post("leave", token="wrong"))
    assert browser.get().status_code == 200
    response = browser.post("leave")
    assert response.status_code == 200
    assert f'{browser.access.cookie_name}=""' in response.headers["set-cookie"]
    for method, path in routes(browser):
        assert is_refused(browser.ask(method, path, form=form_of(browser, method)))
    assert is_refused(browser.ask("GET", browser.access.link.removeprefix(browser.access.origin)))


def test_a_cookie_of_another_server_does_not_lock_the_page(browser):
    browser.enter()
    name = browser.access.cookie_name
    assert name == "caucus_8470"
    for others in ("caucus=x; {}", f"{name}=x; {{}}", f"{{}}; {name}=x", f"a; {name}; =; {{}}"):
        assert browser.get(headers={"cookie": others.format(f"{name}={browser.cookie}")}).status_code == 200
    assert is_refused(browser.get(headers={"cookie": f"{name}=x; caucus={browser.cookie}"}))


def test_each_route_is_closed_under_another_name_and_to_other_methods(browser):
    browser.enter()
    for method, path in routes(browser):
        form = form_of(browser, method)
        for host in (
            "evil.example",
            "evil.example:8470",
            "127.0.0.1",
            "127.0.0.1:1",
            "localhost:8470",
            f"{HOST}.x",
            "",
        ):
            assert is_refused(browser.ask(method, path, headers={"host": host}, form=form), (421,))
        for other in ("HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
            assert browser.ask(other, path).status_code == 405
        wrong = {"GET": "POST", "POST": "GET"}[method]
        both = {(method, path), (wrong, path)} <= set(routes(browser))
        assert both or browser.ask(wrong, path, form=form_of(browser, wrong)).status_code == 405


def test_each_form_needs_our_origin_our_token_and_our_kind_of_form(opened):
    posts = [path.split("/", 2)[2] for method, path in routes(opened()) if method == "POST"]
    assert posts
    for name in posts:
        browser = opened(name)
        browser.enter()
        token, path = browser.access.form_token(browser.cookie), f"{browser.access.root}/{name}"
        right = {door.FORM_TOKEN: token}
        ours = browser.access.origin
        for origin in (None, "null", "", "http://evil.example", f"https://{HOST}", "http://127.0.0.1:1", f"{ours}/"):
            assert is_refused(browser.ask("POST", path, headers={"origin": origin}, form=right))
        for wrong in ({}, {door.FORM_TOKEN: ""}, {door.FORM_TOKEN: token[:-1]}, {door.FORM_TOKEN: browser.cookie}):
            assert is_refused(browser.ask("POST", path, form={"decision": "approve", **wrong}))
        for kind in ("text/plain", "multipart/form-data", "application/json", ""):
            sent = {"content-type": kind}
            assert is_refused(browser.ask("POST", path, headers=sent, content=f"{door.FORM_TOKEN}={token}"), (415,))
        large = right | {"reason": "x" * door.LARGEST_FORM}
        assert is_refused(browser.ask("POST", path, form=large), (413,))
        many = right | {f"field{number}": "" for number in range(door.MOST_FIELDS)}
        assert is_refused(browser.ask("POST", path, form=many), (400,))
        assert not is_refused(browser.ask("POST", path, form=right))


def test_the_link_opens_the_page_once_and_in_time(browser):
    entrance = browser.access.entrance
    token = browser.access.link.removeprefix(f"{browser.access.origin}{entrance}")
    for wrong in ("", token[:-1], f"{token}x", "é"):
        assert is_refused(browser.ask("GET", f"{entrance}{wrong}"))
    assert is_refused(browser.ask("POST", f"{entrance}{token}"))
    response = browser.enter()
    assert response.headers["refresh"] == f"0; url={browser.access.root}/"
    cookie = response.headers["set-cookie"]
    assert cookie.startswith(f"caucus_8470={browser.cookie}; HttpOnly; Max-Age={8 * 3600}; ")
    assert cookie.endswith(f"Path={browser.access.root}/; SameSite=strict")
    assert browser.get().status_code == 200
    for stranger in ("", "wrong"):
        assert is_refused(browser.ask("GET", f"{entrance}{token}", cookie=stranger))
    assert browser.get().status_code == 200  # the session goes on


def test_the_browser_of_the_session_may_open_the_link_again_until_the_session_ends(browser):
    browser.enter()
    link = browser.access.link.removeprefix(browser.access.origin)
    again = browser.ask("GET", link)
    assert (again.status_code, again.headers["refresh"]) == (200, f"0; url={browser.access.root}/")
    assert "set-cookie" not in again.headers  # the session is not made longer
    assert is_refused(browser.ask("GET", f"{link}x"))
    browser.clock.now = door.SESSION_LIFE
    assert is_refused(browser.ask("GET", link))
    browser.clock.now = 0.0
    browser.access.leave()
    assert is_refused(browser.ask("GET", link))


def test_a_link_that_nobody_opened_in_time_is_closed(browser):
    browser.clock.now = door.LINK_LIFE
    assert is_refused(browser.enter())
    assert is_refused(browser.get())


def test_two_pages_share_neither_link_nor_session_nor_path(opened):
    one, other = map(opened, "ab")
    one.enter()
    assert one.access.root != other.access.root
    assert is_refused(other.get(cookie=one.cookie))
    assert is_refused(other.ask("GET", one.access.link.removeprefix(one.access.origin)))


def test_each_response_forbids_scripts_frames_foreign_content_and_caching(browser):
    responses = [browser.get(cookie="wrong"), browser.enter()]
    responses += [browser.ask(method, path) for method, path in routes(browser)]
    responses += [browser.get("no such page"), browser.ask("PUT", "/")]
    for response in responses:
        scripted = '<script src="page.js" defer></script>' in response.text
        for name, value in (door.HEADERS | (door.SCRIPTED if scripted else {})).items():
            assert response.headers.get_list(name) == [value]
    policy = door.HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "script" not in policy
    assert door.SCRIPTED["Content-Security-Policy"] == f"{policy}; script-src 'self'; connect-src 'self'"


def test_door_route_with_headers_of_its_own_gets_ours(browser):
    async def loose(scope, receive, send):
        await Response(headers={"Content-Security-Policy": "default-src *", "Cache-Control": "public"})(
            scope, receive, send
        )

    browser.enter()
    browser.app._app = loose
    response = browser.get()
    assert {name: response.headers.get_list(name) for name in door.HEADERS} == {
        name: [value] for name, value in door.HEADERS.items()
    }


def test_bytes_are_taken_where_they_are_expected_with_our_origin_and_token_in_a_header(opened):
    for number, name in enumerate(("receive", "decide", "start")):
        browser = opened(str(number))
        browser.enter()
        path, token = f"{browser.access.root}/{name}", browser.access.form_token(browser.cookie)
        right = {"content-type": door.BYTES, door.TOKEN_HEADER: token}
        expected = any(path == known for _, known in routes(browser)) and name == "receive"
        response = browser.ask("POST", path, headers=right, content=b"texts")
        assert response.status_code == (200 if expected else 415)
        for change in ({"origin": None}, {door.TOKEN_HEADER: None}, {door.TOKEN_HEADER: "x"}, {"cookie": None}):
            assert is_refused(browser.ask("POST", path, headers=right | change, content=b"texts"), (403, 415))


def test_no_page_has_another_script_a_style_of_its_own_or_a_foreign_address(browser):
    browser.enter()
    for method, path in routes(browser):
        if method == "GET" and "html" in (response := browser.ask(method, path)).headers["content-type"]:
            assert "<script" not in response.text.replace('<script src="page.js" defer></script>', "")
            assert "style=" not in response.text
            assert "<style" not in response.text
            assert " on" not in "".join(part.partition(">")[0] for part in response.text.split("<form")[1:])
            assert "http" not in response.text


def test_a_chosen_language_stays_and_its_form_leads_back_to_the_page(browser):
    browser.enter()
    for code, said in (("de", "Abmelden"), ("fr", "Se déconnecter")):
        response = browser.post("language", to=code, back="plan?run=a%20b")
        assert (response.status_code, response.headers["location"]) == (303, f"{browser.access.root}/plan?run=a%20b")
        cookie = response.headers["set-cookie"]
        for attribute in ("HttpOnly", "SameSite=strict", f"Path={browser.access.root}/", f"{LANGUAGE}={code};"):
            assert attribute in cookie
        both = f"{browser.access.cookie_name}={browser.cookie}; {LANGUAGE}={code}"
        assert said in browser.get(headers={"cookie": both, "accept-language": "en"}).text
    assert "set-cookie" not in browser.post("language", to="xx").headers
    unknown = f"{browser.access.cookie_name}={browser.cookie}; {LANGUAGE}=x"
    assert "Log out" in browser.get(headers={"cookie": unknown}).text


@pytest.mark.parametrize(
    "back", ["//evil.example", "https://evil.example", "/\\evil.example", "\r\nset-cookie: a=b", "../../x"]
)
def test_no_choice_of_a_language_leads_to_another_address(browser, back):
    browser.enter()
    response = browser.post("language", to="de", back=back)
    assert response.headers["location"].startswith(f"{browser.access.root}/")
    assert "a=b" not in response.headers.get("set-cookie", "")


def test_each_page_offers_the_languages_and_the_way_back_to_itself(browser):
    browser.enter()
    for method, path in routes(browser):
        if method == "GET" and "html" in (response := browser.ask(method, f"{path}?a=b")).headers["content-type"]:
            page = path.rpartition("/")[2]
            if 'name="to"' in response.text:
                assert f'value="{page}?a=b">' in response.text
                assert [response.text.count(f'name="to" value="{code}"') for code in ("en", "de", "fr")] == [1, 1, 1]
