"""`caucus-party page`: the link, the port, what is missing, and a real server that shows the page to its browser."""

import re

import httpx

from client.command import main
from tests.support.browsing import served
from tests.support.hospital import said


def test_a_wrong_folder_or_port_or_a_missing_package_is_told_at_once(made, tmp_path, capsys, monkeypatch):
    assert "client.yaml" in said(capsys, "page", tmp_path)
    assert "port;" in said(capsys, "page", made, "--port", "65536")
    monkeypatch.setattr("common.system.extras.find_spec", lambda package: None if package == "jinja2" else package)
    assert "EXTRAS=[page]" in said(capsys, "page", made)


def test_ctrl_c_ends_it_in_good_order(made, capsys, monkeypatch):
    def interrupted(sockets):
        assert len(sockets) == 1
        raise KeyboardInterrupt

    def serving(application, host, address):
        assert address is None
        assert application.args == (made,)
        assert re.fullmatch(r"127\.0\.0\.1:\d+", host)
        return page_access, type("Server", (), {"run": staticmethod(interrupted)})

    page_access = type("Access", (), {"link": "http://the-link"})
    monkeypatch.setattr("common.page.app.page_server", serving)
    assert main(["page", str(made), "--port", "0"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "http://the-link"


def test_a_real_server_opens_the_page_on_loopback_alone(made):
    with served(made) as link, httpx.Client(trust_env=False, timeout=30) as client:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/enter/[\w-]{43}", link)
        assert client.get(link).status_code == 200
        shown = client.get(link.partition("enter/")[0])
        assert shown.status_code == 200
        assert not {"server", "date"} & set(shown.headers)
        assert client.get(link).status_code == 200  # in the same browser
        assert httpx.get(link, trust_env=False, timeout=30).status_code == 403
