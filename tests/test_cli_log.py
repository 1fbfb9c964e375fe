"""The log of `drift consume`: once a minute for each kind of trouble, kafka-python's, too."""

import logging
from types import SimpleNamespace

import pytest

from drift.cli._log import Secrets, logging_to_stderr
from drift.consumers import trouble_log


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(trouble_log, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def lines(capsys):
    return [line.split(": ", 1)[1] for line in capsys.readouterr().err.splitlines()]


def test_each_kind_of_trouble_has_a_line_a_minute_and_the_last_one_its_number(clock, capsys):
    kafka, drift = logging.getLogger("kafka.net.manager"), logging.getLogger("drift.consumers")
    with logging_to_stderr(Secrets({"hunter2"})):
        for n in range(290):  # 1.3 s apart, as of a broker that is gone for 6 minutes
            clock.now = 1.3 * n
            kafka.error("connection %d failed: hunter2", n)
            for partition in range(2):
                drift.warning("%s: no checkpoint %d", ("t", partition), n)
            drift.info("examples=%d", n)
    printed = lines(capsys)
    of = {word: [line for line in printed if word in line] for word in ("examples", "failed", "no")}
    assert len(of["examples"]) == 290
    assert of["failed"] == [
        "connection 0 failed: ***",
        # The first that comes once a minute is over has the last one before it printed.
        "connection 46 failed: *** (and 45 like it before)",
        *(f"connection {46 + 47 * n} failed: *** (and 46 like it before)" for n in range(1, 6)),
        "connection 289 failed: *** (and 7 like it before)",
    ]
    assert len(of["no"]) == 2 * len(of["failed"])


@pytest.mark.usefixtures("clock")
def test_what_was_limited_before_is_not_limited_again(capsys):
    log = logging.getLogger("drift.consumers")
    with logging_to_stderr(Secrets(), as_json=True):
        for n in range(3):
            log.warning("letter %d", n, extra=trouble_log.LIMITED)
    assert capsys.readouterr().err.count('"level": "WARNING"') == 3
