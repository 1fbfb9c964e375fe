"""What the commands that run experiments share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields
from pathlib import Path  # noqa: TC003 - options are read off their types
from typing import Any

from drift._options import option
from drift.cli._command import Command, say

__all__ = ["Experiment"]


@dataclass(kw_only=True)
class Experiment(Command):
    """Runs of models, where they go, and what remains of them."""

    jobs: int = option("Processes at a time; -1: one for each core.", -1)
    backend: str = option(
        "Where they run: loky, on this machine; dask or ray, on a cluster.",
        "loky",
        choices=("loky", "dask", "ray"),
    )
    address: str | None = option(
        "Address of the cluster; default: one is started on this machine.", None
    )
    output: Path | None = option("Folder of the results; default: one in results.", None)

    @property
    @abstractmethod
    def folder(self) -> Path:
        """Where the results go."""

    @property
    def interrupted(self) -> str:
        """What Ctrl-C and SIGTERM print."""
        return (
            f"interrupted: the runs that ended are kept in {self.folder}; "
            "the same command again computes the rest"
        )

    def settings(self) -> dict[str, Any]:
        """Return what the function is called with: every option by its name."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        return given | {"output": self.folder, "progress": True}

    def show(self, results: Any) -> None:
        """Print the results and where they are."""
        from rich.console import Console

        console = Console()
        if not console.is_terminal:  # a file or a pipe, which has room for tables
            console.width = max(120, console.width)
        console.print(results)
        files = sorted(self.folder.iterdir())
        looked_at = [path.name for path in files if path.suffix in {".html", ".png", ".svg"}]
        rest = f"{len(files) - len(looked_at)} files of tables and runs"
        names = ", and ".join([", ".join(looked_at), rest] if looked_at else [rest])
        say(f"{results.seconds:.0f} s; in {self.folder}: {names}")
