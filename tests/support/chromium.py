"""A real browser: the program that `CHROMIUM` names, or `chromium` on the path; it is never downloaded."""

import os
import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
MARKS = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path, and CHROMIUM names none"),
]
"""Marks of a module with tests that need the browser."""
ZOOMED = 320
"""Width, in CSS pixels, of a window of 1280 pixels at a zoom of 400%."""


@pytest.fixture(scope="module")
def chromium():
    """The browser, started once for the tests of a module."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as here:
        # Chromium's sandbox cannot be had as root, as in a container.
        running = here.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@contextmanager
def watching(chromium):
    """Yield a function that makes an empty page and records the page's requests and errors."""
    contexts = []

    def watched(**settings):
        context = chromium.new_context(viewport={"width": 1280, "height": 900}, **settings)
        contexts.append(context)
        page = context.new_page()
        page.asked, page.said = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        return page

    yield watched
    for context in contexts:
        context.close()


@contextmanager
def visiting(chromium, link):
    """Yield a function that opens a page's link as a person does, on a page of `watching`."""
    with watching(chromium) as watched:

        def entered(**settings):
            page = watched(**settings)
            page.root = link.partition("enter/")[0]
            page.goto(link)
            page.wait_for_url(page.root)
            return page

        yield entered


def unfolded(page):
    """Open everything that a page has folded; the page's policy permits no scripts except the test's own."""
    page.evaluate("() => document.querySelectorAll('details').forEach((each) => each.open = true)")


def width(page):
    """Return the width of an unfolded page in pixels."""
    unfolded(page)
    return page.evaluate("() => document.documentElement.scrollWidth")


def barriers(page):
    """Return the problems that the accessibility check finds on an unfolded page, as text; empty if it passes."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    unfolded(page)
    found = axe.Axe().run(page)
    return f"{page.url}: {found.generate_report()}" if found.violations_count else ""
