"""The files of `deploy`, read."""

import json
import re
from pathlib import Path

import pytest

__all__ = ["DEPLOY", "load", "metrics_in", "queries"]

DEPLOY = Path(__file__).parents[2] / "deploy"


def load(name):
    """Return the documents of a YAML file, or the one that there is."""
    documents = list(pytest.importorskip("yaml").safe_load_all((DEPLOY / name).read_text("utf-8")))
    return documents if len(documents) > 1 else documents[0]


def queries():
    """Yield each panel's title and query, all topics chosen, as Grafana sends them."""
    dashboard = json.loads((DEPLOY / "grafana/dashboard.json").read_text("utf-8"))
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            query = target["expr"].replace("$__rate_interval", "1m")
            query = query.replace("$group", ".*").replace("$topic", ".*")
            yield panel["title"], query


def metrics_in(text):
    """Return the names of drift's metrics in a query."""
    return set(re.findall(r"\bdrift_\w+", text))
