"""Pages and pictures are files of their own, and every file of theirs is in the wheel."""

import re
import tomllib
from pathlib import Path

TEMPLATES = Path("server/report/templates")


def test_every_template_is_part_of_the_package():
    data = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["package-data"]
    packed = {
        path for part in ("client", "common", "server") for given in data[part] for path in Path(part).glob(given)
    }
    of_pages = [path for part in ("client", "common", "server") for path in Path(part, "page").iterdir()]
    assert {*TEMPLATES.iterdir(), *(path for path in of_pages if path.suffix in {".css", ".js", ".yaml"})} <= packed


def test_no_page_and_no_picture_is_written_in_python():
    markup = re.compile(r"</(html|body|table|div|svg|style|script|p|td)>|{% (for|if|macro) ")
    sources = [path for part in ("server", "client", "common", "simulations") for path in Path(part).rglob("*.py")]
    assert len(sources) > 100
    assert not [str(path) for path in sources if markup.search(path.read_text("utf-8"))]
