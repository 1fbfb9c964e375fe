from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False

PYTHONS = nox.project.python_versions(nox.project.load_toml("pyproject.toml"))


@nox.session
def lint(session: nox.Session) -> None:
    session.install("ruff>=0.12", "check-jsonschema")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    workflows = map(str, sorted(Path(".github/workflows").glob("*.yml")))
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows)


@nox.session
def typing(session: nox.Session) -> None:
    session.install("-e", ".[dev]")
    session.run("mypy")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    # Editable: doctests import from the source folder, where the extension must then be.
    session.install("-e", ".[test]")
    session.run("pytest", *session.posargs)


@nox.session
def docs_tests(session: nox.Session) -> None:
    session.install("-e", ".[test,notebooks]")
    session.run(
        "pytest",
        "tests/test_docs.py",
        "tests/test_contributing.py",
        "tests/test_notebooks.py",
        *session.posargs,
    )


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site, where a warning is an error, and look for requests to other hosts."""
    session.install(".[docs]")
    session.env["NO_MKDOCS_2_WARNING"] = "1"  # mkdocs is below 2 here
    session.run("mkdocs", "build")  # quiet, it would not count warnings
    session.run("python", "tools/prose.py")
