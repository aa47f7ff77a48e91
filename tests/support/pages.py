"""A page, parsed in the same way as by a browser."""

from html.parser import HTMLParser

from server.report.write import write_report

VOID = {"meta", "link", "input", "br", "img", "hr", "circle", "rect", "line", "path", "wbr"}


class Page(HTMLParser):
    """Elements, texts and nesting of a page; all white space counts as equal."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.scripts, self.text, self.first = [], [], [], "", ""
        self.feed(text)
        self.close()
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif self.open and self.open[-1] != "style":
            self.text += data.replace("\N{NO-BREAK SPACE}", " ")
            if "body" in self.open and not self.first.strip():
                self.first = data

    def tags(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


def report(run):
    """Write the report of a run; return its parsed page."""
    return Page(write_report(run).read_text(encoding="utf-8"))
