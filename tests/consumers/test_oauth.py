"""OAuth as its page has it: its settings and its class get tokens and log in."""

import json
import re
import sys
import threading
import time
from base64 import urlsafe_b64encode
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs

import pytest

from drift.cli._log import Secrets
from drift.cli._settings import load_kafka
from drift.consumers.client.topics import Reader, create
from drift.testing import produce

pytest.importorskip("kafka")

from kafka.net.sasl.oauth import SaslMechanismOAuth  # after the check that there is a client

PAGE = Path(__file__).parents[2] / "docs" / "oauth.md"


def block(language, word):
    """The only block of code of the page that has a word."""
    pattern = rf"^```{language}\n(.*?)^```$"
    found = re.findall(pattern, PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    [text] = [code for code in found if word in code]
    return text


def token(number):
    """A token that is not signed, as the broker of the tests takes it."""
    now = int(time.time())
    claims = {"sub": "drift", "iat": now - 60, "exp": now + 300, "jti": str(number)}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    return b"".join(urlsafe_b64encode(one).rstrip(b"=") + b"." for one in parts).decode()


@pytest.fixture
def provider(monkeypatch):
    """An identity provider: what it was asked, and its address in the environment."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            self.send_response(200)
            self.end_headers()
            answer = {"access_token": token(len(asked)), "expires_in": 300}
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setenv("OAUTH_URL", f"http://127.0.0.1:{server.server_port}/token")
    monkeypatch.setenv("OAUTH_ID", "drift")
    monkeypatch.setenv("OAUTH_SECRET", "hunter2")
    yield asked
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def config(tmp_path, monkeypatch):
    """The page's settings and its module, in the folder that we are in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "oauth", raising=False)
    config = tmp_path / "worker.toml"
    config.write_text(block("toml", "OAUTHBEARER"), encoding="utf-8")
    (tmp_path / "oauth.py").write_text(block("py", "AbstractTokenProvider"), encoding="utf-8")
    yield config
    sys.modules.pop("oauth", None)


def test_tokens_are_kept_and_asked_for_before_they_expire(config, monkeypatch, provider):
    reading, sending = load_kafka(config, {}, None, Secrets())
    assert reading["security_protocol"] == sending["security_protocol"] == "SASL_SSL"
    login = SaslMechanismOAuth(**reading)
    clock, shown = SimpleNamespace(now=1000.0), []
    monkeypatch.setattr(sys.modules["oauth"], "time", SimpleNamespace(time=lambda: clock.now))
    for clock.now in (1000.0, 1239.0, 1241.0):
        shown.append(login.auth_bytes())
    assert len(provider) == 2
    assert shown[0] == shown[1] != shown[2]
    assert shown[0].startswith(b"n,,\x01auth=Bearer eyJ")
    assert provider[-1] == {
        "grant_type": ["client_credentials"],
        "client_id": ["drift"],
        "client_secret": ["hunter2"],
    }


@pytest.mark.kafka
def test_a_real_broker_lets_us_in(kafka_broker, config, provider):
    secure = kafka_broker.secure_options
    environ = {
        "DRIFT_KAFKA_BOOTSTRAP_SERVERS": secure["bootstrap_servers"],
        "DRIFT_KAFKA_SSL_CAFILE": secure["ssl_cafile"],
    }
    reading, sending = load_kafka(config, environ, None, Secrets())
    create("by-token", 1, sending)
    produce(kafka_broker.address, "by-token", [b"{}"])
    with Reader("by-token", reading) as reader:
        assert [one.value for one in reader.read({0: 1})] == [b"{}"]
    assert 1 <= len(provider) <= 2
