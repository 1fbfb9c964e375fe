"""OAuth as the page of operations has it: its settings and its class get tokens and log in."""

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs

import pytest

from drift.cli._log import Secrets
from drift.cli._settings import load_kafka

pytest.importorskip("kafka")

from kafka.net.sasl.oauth import SaslMechanismOAuth  # after the check that there is a client

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


def block(language, word):
    """The only block of code of the page that has a word."""
    pattern = rf"^```{language}\n(.*?)^```$"
    found = re.findall(pattern, PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    [text] = [code for code in found if word in code]
    return text


@pytest.fixture
def provider(monkeypatch):
    """An identity provider: what it was asked, and its address in the environment."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            self.send_response(200)
            self.end_headers()
            token = {"access_token": f"token-{len(asked)}", "expires_in": 300}
            self.wfile.write(json.dumps(token).encode())

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("OAUTH_URL", f"http://127.0.0.1:{server.server_port}/token")
    monkeypatch.setenv("OAUTH_ID", "drift")
    monkeypatch.setenv("OAUTH_SECRET", "hunter2")
    yield asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_client_logs_in_with_tokens_that_are_asked_for_before_they_expire(
    tmp_path, monkeypatch, provider
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "oauth", raising=False)
    config = tmp_path / "worker.toml"
    config.write_text(block("toml", "OAUTHBEARER"), encoding="utf-8")
    (tmp_path / "oauth.py").write_text(block("py", "AbstractTokenProvider"), encoding="utf-8")
    reading, sending = load_kafka(config, {}, None, Secrets())
    for options in (reading, sending):
        assert options["security_protocol"] == "SASL_SSL"
        login = SaslMechanismOAuth(**options)
        login.auth_bytes()
    clock = SimpleNamespace(now=1000.0)
    module = sys.modules.pop("oauth")
    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: clock.now))
    login.token_provider.until = 0.0
    shown = []
    for clock.now in (1000.0, 1239.0, 1241.0):
        shown.append(login.auth_bytes())
    first = len(provider) - 1
    assert shown == [b"n,,\x01auth=Bearer token-%d\x01\x01" % n for n in (first, first, first + 1)]
    assert provider[-1] == {
        "grant_type": ["client_credentials"],
        "client_id": ["drift"],
        "client_secret": ["hunter2"],
    }
