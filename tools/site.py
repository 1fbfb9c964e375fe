"""Build the site from the repository's own pages: a hook of MkDocs, which mkdocs.yml names.

Pages outside of `docs` (README, CHANGELOG, those beside data, benchmarks and notebooks) take part
where they are, each figure has a dark variant, the reference follows each package's `__all__`, and
links between all of them lead to the same pages on GitHub and on the site. Each page is written as
Markdown, too, beside its HTML.
"""

from __future__ import annotations

import json
import logging
import posixpath
import re
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import griffe
from dark import dark  # beside this file
from mkdocs.structure.files import File, Files

import drift

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
#: Pages that lie elsewhere in the repository, by their place on the site.
ELSEWHERE = {
    "index.md": "README.md",
    **{name: name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")},
    **{name: name for name in ("benchmarks/README.md", "datasets/README.md")},
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
REPOSITORY = PROJECT["urls"]["Repository"]
#: Packages with a page of reference each.
PACKAGES = (
    *("models", "kernels", "features", "explain", "streams", "experiments"),
    *("consumers", "engines", "testing", "errors"),
)
#: Models that are shown with what they inherit: that of all made the page three times as long.
WHOLE = ("KernelClassifier", "StructuredProjectron", "Tracker")
#: What a search multiplies the scores of pages by, by how their places begin: a class comes before
#: pages that name it, and what only developers need comes last.
BOOSTS = {
    **dict.fromkeys(("api/errors/", "api/testing/"), 0.5),
    **dict.fromkeys(("CHANGELOG", "CONTRIBUTING", "architecture", "compatibility"), 0.3),
    **dict.fromkeys(("benchmarks/", "reproduction/", "tracker_ablation"), 0.3),
    "api/": 1.3,
}
SHARED = (
    "All models have the methods of `KernelClassifier` for one example and for many, the Tracker "
    "but for scores. The page of a model has what it adds."
)
LINK = re.compile(r'(\]\(|src="|srcset=")(?!\w+:|#)([^)#"\s]+)([^)"\s]*)')
PICTURE = re.compile(r"<picture>.*?alt=\"(.*?)\" src=\"(.*?)\.svg\".*?</picture>", re.DOTALL)
#: What a browser fetches without being asked: links to other sites, in <a>, are none of these.
REQUEST = re.compile(r"<(?:link|script|img|iframe|source)\b[^>]*(?:src|href)=\"https?:[^>]*>")
FIGURE = re.compile(r"!\[([^]]*)\]\((\S+)\.svg\)")
DARK = re.compile(r"!\[[^]]*\]\(\S+#only-dark\)")
#: GitHub wants a backslash before a pipe in the code of a table, which Python-Markdown shows.
ROW, CODE = re.compile(r"^\|.*$", re.MULTILINE), re.compile(r"`[^`]*`")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
log = logging.getLogger("mkdocs.hooks.site")  # whose warnings --strict counts
_markdown: dict[str, str] = {}


@cache
def api(path: str) -> griffe.Object:
    """Return what drift has at a dotted path, read from its sources: no extra is needed."""
    found = _drift()[path]
    return found.final_target if found.is_alias else found


@cache
def _drift() -> griffe.Object:
    return griffe.load("drift", search_paths=[ROOT], docstring_parser="numpy")


def names(package: str) -> list[str]:
    """Return the public classes and functions of a package, the Tracker first."""
    public = import_module(f"drift.{package}").__all__
    return sorted(
        (name for name in public if api(f"{package}.{name}").kind.value in {"class", "function"}),
        key=lambda name: (name != "Tracker", name.lower()),
    )


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the version, a page for each class, and the repository.

    Not by `repo_url`, for which Material asks the host for its stars.
    """
    config.site_name = f"drift {drift.__version__}"
    pages = [
        {
            f"drift.{package}": [
                f"api/{package}/index.md",
                *({name: f"api/{package}/{name}.md"} for name in names(package)),
            ]
        }
        for package in PACKAGES
    ]
    config.nav += [{"Reference": pages}, {"Source": REPOSITORY}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie elsewhere, and the notebooks as pages."""
    for place, path in ELSEWHERE.items():
        files.append(File.generated(config, place, content=(ROOT / path).read_text("utf-8")))
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        text, images = as_markdown(json.loads(notebook.read_text("utf-8")), notebook.stem)
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=text))
        for name, image in images.items():
            files.append(File.generated(config, f"notebooks/{name}", content=image))
    for figure in sorted((ROOT / "docs" / "img").glob("*.svg")):
        place = f"img/{figure.stem}-dark.svg"
        if not figure.stem.endswith("-dark") and files.get_file_from_path(place) is None:
            text = dark(figure.read_text("utf-8"))
            files.append(File.generated(config, place, content=text))
    for package in PACKAGES:
        for place, content in reference(package).items():
            files.append(File.generated(config, f"api/{package}/{place}.md", content=content))
    return files


def reference(package: str) -> dict[str, str]:
    """Return a page for each public name of a package, and one that lists them."""
    known, parts = names(package), [f"# drift.{package}", _first(api(package))]
    parts += [SHARED] * (package == "models")
    rows = [f"| [`{name}`]({name}.md) | {_first(api(f'{package}.{name}'))} |" for name in known]
    parts.append("\n".join(["| name | |", "|---|---|", *rows]))
    pages = {"index": "\n\n".join(parts) + "\n"}
    for name in known:
        own = "" if package != "models" or name in WHOLE else "\n      inherited_members: false"
        pages[name] = f"::: drift.{package}.{name}\n    options:\n      heading_level: 1{own}\n"
    return pages


def _first(one: griffe.Object) -> str:
    """Return the first paragraph of a docstring, in one line."""
    text = one.docstring.value if one.docstring else ""
    return " ".join(text.partition("\n\n")[0].split())


def as_markdown(notebook: dict[str, Any], stem: str) -> tuple[str, dict[str, str]]:
    """Return a notebook's cells with what they show, and its images by their names."""
    parts: list[str] = []
    images: dict[str, str] = {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/svg+xml" in data:
                name = f"{stem}-{len(images) // 2 + 1}"
                light = "".join(data["image/svg+xml"])
                images |= {f"{name}.svg": light, f"{name}-dark.svg": dark(light)}
                parts.append(f"![{cell['metadata']['alt']}]({name}.svg)")
            elif "text/html" in data:
                # Material lets a table scroll, and gives it a style, where it has none of its own.
                table = "".join(data["text/html"])
                parts.append(table.replace('<table border="1" class="dataframe">', "<table>"))
            elif "text/plain" in data or "text" in output:
                text = "".join(data.get("text/plain", output.get("text", "")))
                parts.append(f"```{{.text .output}}\n{text.rstrip()}\n```")
    return "\n\n".join(parts) + "\n", images


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    """Let links lead to where their pages are on the site, or else to the repository."""
    place = page.file.src_uri
    boost = next((boost for start, boost in BOOSTS.items() if place.startswith(start)), 1)
    page.meta["search"] = {"boost": boost}
    home = posixpath.dirname(ELSEWHERE.get(place, _path(place)))
    places = {_path(uri): uri for uri in files.src_uris}

    def moved(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(home, match[2]))
        if (ROOT / path / "README.md").exists() and path != ".":
            path += "/README.md"
        path = path.removesuffix(".ipynb") + ".md" if path.endswith(".ipynb") else path
        if path in places:
            to = posixpath.relpath(places[path], posixpath.dirname(place) or ".")
        elif (ROOT / path).exists():
            to = f"{REPOSITORY}/blob/main/{path}"
        else:
            to = match[2]  # MkDocs says that it is not there
        return match[1] + to + match[3]

    both = r"![\1](\2.svg#only-light)![\1](\2-dark.svg#only-dark)"
    markdown = FIGURE.sub(both, PICTURE.sub(both, markdown))
    texts = FENCE.split(markdown)
    fences = [*FENCE.findall(markdown), ""]
    markdown = "".join(LINK.sub(moved, t) + f for t, f in zip(texts, fences, strict=True))
    markdown = ROW.sub(
        lambda row: CODE.sub(lambda code: code[0].replace(r"\|", "|"), row[0]), markdown
    )
    _markdown[place] = markdown
    return markdown


def _path(place: str) -> str:
    """Where a page of the site lies in the repository."""
    return ELSEWHERE.get(place, place if place.startswith("notebooks/") else f"docs/{place}")


def on_post_build(config: MkDocsConfig) -> None:
    """Write each page's Markdown beside its HTML, and see that no page asks another host."""
    for place, text in _markdown.items():
        folder = Path(config.site_dir, place).with_suffix("")
        folder = folder.parent if folder.name in ("README", "index") else folder
        page = DARK.sub("", text).replace("#only-light", "")
        page = re.sub(r"^::: (.*)((?:\n +.*)*)$", documented, page, flags=re.MULTILINE)
        (folder / "index.md").write_text(page, "utf-8")
    for file in Path(config.site_dir).rglob("*.html"):
        for request in REQUEST.findall(file.read_text("utf-8")):
            log.warning("%s asks another host: %s", file, request)


def documented(match: re.Match[str]) -> str:
    """Return a name's signature, docstring and public methods, as text."""
    one = api(match[1].removeprefix("drift."))
    own = {one.name: one}
    if one.is_class:
        methods = one.functions if "inherited" in match[2] else one.all_members
        own |= {
            f"{one.name}.{name}": method
            for name, method in methods.items()
            if name[0] != "_" and method.is_function
        }
    return "\n\n".join(
        f"## {full}\n\n```text\n{value.signature()}\n\n"
        f"{value.docstring.value if value.docstring else ''}\n```"
        for full, value in own.items()
    )
