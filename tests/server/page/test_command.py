"""`caucus-coordinator page`: the link, the port, what is missing, and a real server that shows the page."""

import re

import httpx

from tests.support.browsing import served
from tests.support.flower import said


def test_a_wrong_folder_or_port_is_told_at_once(flower, tmp_path, capsys):
    assert "expected coordinator.yaml; got none" in said(capsys, "page", tmp_path / "none")
    assert "port; expected" in said(capsys, "page", flower.folder, "--port", "65536")


def test_without_a_package_it_says_what_to_install(flower, capsys, monkeypatch):
    monkeypatch.setattr("common.system.extras.find_spec", lambda package: None if package == "starlette" else package)
    assert "In the folder of the source: make coordinator" in said(capsys, "page", flower.folder)


def test_a_real_server_opens_the_page_on_loopback_alone(flower):
    with served(flower.folder, "server.command") as link, httpx.Client(trust_env=False, timeout=30) as client:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/enter/[\w-]{43}", link)
        assert client.get(link).status_code == 200
        assert "No run was started yet." in client.get(link.partition("enter/")[0]).text
        assert client.get(link).status_code == 200  # in the same browser
        assert httpx.get(link, trust_env=False, timeout=30).status_code == 403
