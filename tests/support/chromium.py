"""A real browser: what `CHROMIUM` names, or a `chromium` on the path; none is downloaded."""

import os
import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
MARKS = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path, and CHROMIUM names none"),
]
"""Marks of a module whose tests need it."""
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


def unfolded(page):
    """Open all that a page has folded; its policy lets no script in but a test's own."""
    page.evaluate("() => document.querySelectorAll('details').forEach((each) => each.open = true)")


def width(page):
    """Return the pixels that a page takes across, unfolded."""
    unfolded(page)
    return page.evaluate("() => document.documentElement.scrollWidth")


def barriers(page):
    """Return what the accessibility check finds on a page, unfolded, in words; empty if it passes."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    unfolded(page)
    found = axe.Axe().run(page)
    return f"{page.url}: {found.generate_report()}" if found.violations_count else ""
