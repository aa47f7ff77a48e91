"""A browser without a screen: it stores the cookie, and sends what a real browser would send."""

import asyncio
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from threading import Thread

import httpx

from client.page.app import hospital_page
from common.page.access import FORM_TOKEN, Access
from common.page.app import page_server

HOST = "127.0.0.1:8470"


class Clock:
    """A clock whose time, in seconds, is set by a test."""

    now = 0.0

    def __call__(self):
        return self.now


class Browser:
    """A browser for the page of one folder, by default a hospital's."""

    def __init__(self, folder, application=hospital_page, password=""):
        self.folder = folder
        self.clock = Clock()
        self.access = Access(HOST, password=password, clock=self.clock)
        self.app = application(folder, self.access)
        self.cookie = ""

    @classmethod
    def entered(cls, folder):
        """Return the browser of a hospital's folder after it has opened the link."""
        browser = cls(folder)
        browser.enter()
        return browser

    def enter(self):
        """Open the link, and store the session's cookie."""
        response = self.ask("GET", self.access.link.removeprefix(self.access.origin))
        self.cookie = response.cookies.get(self.access.cookie_name, "")
        return response

    def ask(self, method, path, *, headers=None, form=None, cookie=None, **more):
        """Send one request; a header with the value None is omitted."""
        cookies = f"{self.access.cookie_name}={self.cookie if cookie is None else cookie}"
        sent = {"host": HOST, "cookie": cookies}
        if method == "POST":
            sent["origin"] = self.access.origin
        sent |= headers or {}
        sent = {name: value for name, value in sent.items() if value is not None}
        transport = httpx.ASGITransport(app=self.app)

        async def send():
            async with httpx.AsyncClient(transport=transport, base_url=self.access.origin) as client:
                return await client.request(method, path, headers=sent, data=form, **more)

        return asyncio.run(send())

    def get(self, path="", **more):
        return self.ask("GET", f"{self.access.root}/{path}", **more)

    def post(self, path, *, token=None, **fields):
        """Submit a form with the session's own token, or with another token."""
        mine = self.access.form_token(self.cookie) if token is None else token
        return self.ask("POST", f"{self.access.root}/{path}", form={FORM_TOKEN: mine, **fields})


def forms(html):
    """Return the hidden fields of each form on a page except the logout form, as dictionaries keyed by name."""
    hidden = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')
    main = html.partition("<main")[2]
    return [dict(hidden.findall(form)) for form in re.findall(r"<form.*?</form>", main, re.DOTALL)]


@contextmanager
def served(folder, program="client.command"):
    """Run a program's command `page` in a separate process, and yield the link that it prints."""
    command = [sys.executable, "-m", program, "page", str(folder), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        process.stdout.readline()
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        assert (*process.communicate(timeout=60), process.returncode) == ("the page is closed\n", "", 0)
    finally:
        process.kill()
        process.communicate()


@contextmanager
def opened_here(folder, application=hospital_page):
    """Serve the page in a thread of this process, which starts immediately, and yield the link."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        access, server = page_server(partial(application, folder), f"127.0.0.1:{listening.getsockname()[1]}")
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield access.link
        finally:
            server.should_exit = True
            thread.join()
