"""A real browser: what `CHROMIUM` names, or a `chromium` on the path; none is downloaded."""

import os
import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
ZOOMED = 320
"""Pixels of a window of 1280 at a zoom of 400 %."""


@contextmanager
def started():
    """Yield the browser, for the tests of a module."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as here:
        # Chromium's sandbox cannot be had as root, as in a container.
        running = here.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@contextmanager
def visiting(chromium, link):
    """Yield what opens a page's link as a person does, and watches it: what it asks for, and what it complains of."""
    contexts = []

    def entered(**settings):
        context = chromium.new_context(viewport={"width": 1280, "height": 900}, **settings)
        contexts.append(context)
        page = context.new_page()
        page.asked, page.said = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.root = link.partition("enter/")[0]
        page.goto(link)
        page.wait_for_url(page.root)
        return page

    yield entered
    for context in contexts:
        context.close()
