"""The command line. Commands that talk to Kafka have modules of their own.

Everything heavy is imported inside the commands, so that help and mistakes answer at once.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from drift import (
    __version__,
    cli_checkpoint,
    cli_consume,
    cli_demo,
    cli_produce,
    cli_replay,
    cli_watch,
)
from drift.errors import DriftError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["app", "main"]

#: Columns of a table of experiments, each on a line of its own, and of any terminal.
_WIDE = 200
_NARROW = 80

_Number = TypeVar("_Number", int, float)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Online kernel classifiers on a budget, for streams whose target shifts.",
)
app.add_typer(cli_checkpoint.app, name="checkpoint")
for _command in (
    cli_produce.produce,
    cli_consume.consume,
    cli_watch.watch,
    cli_replay.replay,
    cli_demo.demo,
):
    app.command()(_command)


def main() -> None:
    """Run the command line; the console script ``drift``."""
    app()


def _print_version(wanted: bool) -> None:  # noqa: FBT001
    if wanted:
        typer.echo(f"drift {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[  # noqa: FBT002
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


@app.command()
def models() -> None:
    """Say which model to take, and list them: parameters, memory, time of an update, paper."""
    from rich.console import Console  # noqa: PLC0415

    from drift.models.listing import listing  # noqa: PLC0415

    Console(width=_NARROW).print(listing())


@app.command()
def track(  # noqa: PLR0913, PLR0917
    stream: Annotated[
        str, typer.Option(help="newswire, rcv1, reuters21578, segments, a9a, a LIBSVM file.")
    ] = "newswire",
    data: Annotated[
        Path | None, typer.Option(help="Folder of the stream's files; else one in $DRIFT_DATA.")
    ] = None,
    rows: Annotated[int | None, typer.Option(help="Take the first examples only.")] = None,
    shifts: Annotated[str, typer.Option(help="Groups of streams, by their shifts.")] = "0,1,3,7",
    models: Annotated[
        str | None, typer.Option(help="Perceptron,SPA,RBP,LBP,Forgetron; also SOP,RBSOP,LBSOP,CKS.")
    ] = None,
    budgets: Annotated[
        str | None, typer.Option(help="For models on a budget; else after the stream's length.")
    ] = None,
    decays: Annotated[str | None, typer.Option(help="For SPA; else 0.1,0.5,1,2,4.")] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Runs of RBP and RBSOP a setting; else 5 (newswire 2) and 1.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the streams.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes at a time; -1: one for each core.")] = -1,
    backend: Annotated[
        str, typer.Option(help="Where they run: loky, on this machine; dask or ray, on a cluster.")
    ] = "loky",
    address: Annotated[
        str | None, typer.Option(help="The cluster's; else one is started on this machine.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder of the results; else results/track-<stream>.")
    ] = None,
) -> None:
    """Run the tracking paper's experiment: budgeted models on streams whose target shifts.

    What the output folder already holds is not computed again. Lists are separated by commas.
    """
    folder = Path("results", f"track-{Path(stream).stem}") if output is None else output
    with _answering(folder):
        groups = _numbers("--shifts", shifts, int)
        from rich.console import Console  # noqa: PLC0415

        from drift import experiments  # noqa: PLC0415

        results = experiments.track(
            stream,
            data=data,
            rows=rows,
            shifts=groups,
            models=None if models is None else _parts(models),
            budgets=None if budgets is None else _numbers("--budgets", budgets, int),
            decays=None if decays is None else _numbers("--decays", decays, float),
            seeds=seeds,
            seed=seed,
            jobs=jobs,
            backend=backend,
            address=address,
            output=folder,
            progress=True,
        )
        Console().print(results)
        _say_where(results.seconds, folder)


@app.command()
def reproduce(  # noqa: PLR0913, PLR0917
    name: Annotated[
        str | None, typer.Argument(help="The experiment; without one, all are listed.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the files, or openml to fetch; else one in $DRIFT_DATA."),
    ] = None,
    quick: Annotated[  # noqa: FBT002
        bool, typer.Option("--quick", help="Few examples, one permutation: under a minute.")
    ] = False,
    rows: Annotated[int | None, typer.Option(help="Take the first examples only.")] = None,
    permutations: Annotated[
        int | None, typer.Option(help="Random orders of the data; else as many as the paper.")
    ] = None,
    models: Annotated[
        str | None, typer.Option(help="Some of the experiment's models or curves; else all.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes at a time; -1: one for each core.")] = -1,
    backend: Annotated[
        str, typer.Option(help="Where they run: loky, on this machine; dask or ray, on a cluster.")
    ] = "loky",
    address: Annotated[
        str | None, typer.Option(help="The cluster's; else one is started on this machine.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder of the results; else results/<name>.")
    ] = None,
) -> None:
    """Repeat an experiment of a paper: models side by side over permutations of its data.

    What the output folder already holds is not computed again. Lists are separated by commas.
    """
    folder = output or Path("results", f"{name}-quick" if quick else f"{name}")
    with _answering(folder):
        from rich.console import Console  # noqa: PLC0415

        from drift import experiments  # noqa: PLC0415

        if name is None:
            from drift.experiments.terminal import reproductions  # noqa: PLC0415

            Console(width=_WIDE).print(reproductions(experiments.REPRODUCTIONS))
            return
        results = experiments.reproduce(
            name,
            data=data,
            rows=rows,
            permutations=permutations,
            models=None if models is None else _parts(models),
            quick=quick,
            jobs=jobs,
            backend=backend,
            address=address,
            output=folder,
            progress=True,
        )
        Console().print(results)
        _say_where(results.seconds, folder)


def _say_where(seconds: float, folder: Path) -> None:
    files = sorted(path.name for path in folder.iterdir())
    typer.echo(f"{seconds:.0f} s; in {folder}: {', '.join(files)}")


def _parts(text: str) -> list[str]:
    return [part for part in (part.strip() for part in text.split(",")) if part]


def _numbers(option: str, text: str, number: Callable[[str], _Number]) -> list[_Number]:
    try:
        return [number(part) for part in _parts(text)]
    except ValueError:
        kind = "whole numbers" if number is int else "numbers"
        raise ParameterError(f"{option} takes {kind} between commas, not {text!r}") from None


def _warn(message: Warning | str, *_where: object, **_more: object) -> None:
    typer.echo(f"warning: {message}", err=True)


@contextmanager
def _answering(folder: Path) -> Iterator[None]:
    """Turn what the user did into a message and an exit code, instead of a traceback."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            yield
    except DriftError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo(
            f"interrupted: the runs that ended are kept in {folder}; "
            "the same command again computes the rest",
            err=True,
        )
        raise typer.Exit(130) from None


if __name__ == "__main__":
    main()
