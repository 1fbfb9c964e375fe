"""What CI runs: `nox -l` lists it, `nox -s lint` runs one. `.ci/run` runs these, too."""

from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"

PYTHONS = nox.project.python_versions(nox.project.load_toml("pyproject.toml"))


@nox.session
def lint(session: nox.Session) -> None:
    """Style and format; workflows by their schema."""
    session.install("ruff>=0.12", "check-jsonschema")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    workflows = map(str, sorted(Path(".github/workflows").glob("*.yml")))
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows)


@nox.session
def typing(session: nox.Session) -> None:
    """Types, strictly."""
    session.install("-e", ".[dev]")
    session.run("mypy")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Tests and doctests, on every supported Python; only in CI is a missing one an error."""
    # Editable: doctests import from the source folder, where the extension must then be.
    session.install("-e", ".[test]")
    session.run("pytest", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The site, into `site/`, and the prose of its pages: a warning is an error."""
    session.install(".[docs]")
    session.env.update(NO_MKDOCS_2_WARNING="1", PYTHONWARNINGS="ignore")  # mkdocs is below 2
    session.run("mkdocs", "build", silent=True)  # its own --quiet would not count warnings
    session.run("python", "tools/prose.py")
