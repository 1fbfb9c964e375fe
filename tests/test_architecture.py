"""The shape of the package: which module may import which, and what importing costs."""

import ast
import csv
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

import drift
from drift.models import MODELS, compiled

PACKAGE = Path(drift.__file__).parent

#: What a part of the package may import of the others; everything may import errors, types and the
#: checks of parameters and options.
SHARED = (
    *("errors", "types", "_values", "_checks", "_csr", "_decision", "_durations", "_format"),
    *("_late", "_options"),
)
ALLOWED = {
    "models": {"kernels"},
    "features": {"models"},
    "engines": {"models"},
    "explain": {"models"},
    "experiments": {"explain", "features", "kernels", "models", "streams"},
    "consumers": {"explain", "kernels", "models"},
    "testing": {"consumers"},
    "cli": {"kernels", "models", "streams", "experiments", "consumers", "testing"},
}
#: Heavy or optional libraries, and the only modules that may import them.
OWNERS = {
    "matplotlib": {"drift.experiments.plots"},
    "plotly": {"drift.experiments.comparison.report"},
    "narwhals": {
        *("drift.models._batch.batches", "drift.models._batch.frames"),
        "drift.streams.frames",
    },
    "pandas": {"drift.experiments.results"},
    "kafka": {
        "drift.consumers.client",
        *(
            f"drift.consumers.client.{name}"
            for name in (
                *("assignor", "batches", "consumer", "errors", "producer", "topics"),
                "workarounds",
            )
        ),
        "drift.testing._assignor",
        "drift.testing._clients",
    },
    "confluent_kafka": {"drift.testing._mock"},
    "distributed": {"drift.experiments.cluster"},
    "ray": {"drift.experiments.cluster"},
    "orjson": {"drift.consumers._json"},
    "obstore": {"drift.consumers.checkpoints.objects"},
    "fastavro": {"drift.consumers.registry"},
    "jsonschema": {"drift.consumers.registry"},
    "prometheus_client": {"drift.consumers.exporter", "drift.consumers.service"},
    "starlette": {"drift.consumers.service", "drift.consumers.web_server"},
    "uvicorn": {"drift.consumers.web_server"},
}


@cache
def trees():
    """The package's Python files by name, parsed."""
    result = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name == "__main__.py":  # two lines that start the command line
            continue
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        result[name] = ast.parse(path.read_text("utf-8"))
    return result


@cache
def imports(tree):
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
    return found


def test_imports_go_one_way():
    wrong = []
    for module, tree in trees().items():
        part = [*module.split("."), "drift"][1]
        for name in imports(tree):
            other = name.split(".")[1] if name.startswith("drift.") else part
            if other not in {part, *SHARED} | ALLOWED.get(part, set()):
                wrong.append(f"{module} imports {name}")
    assert not wrong


def imported(tree, package, known):
    """The package's files that a file imports, of types only and by their names as strings, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from names & known or {node.module} & known
        elif isinstance(node, ast.Import):
            yield from {alias.name for alias in node.names} & known
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.partition(":")[0]  # of a function by its name, the file
            # What lies in a package may name it: it is imported before.
            yield from {text} & known - {".".join(package[:n]) for n in range(len(package) + 1)}


def circles(edges):
    """The files that import themselves through others."""

    def reached(file):
        result, ahead = set(), [file]
        while ahead:
            others = edges[ahead.pop()] - result
            result |= others
            ahead += others
        return result

    return sorted(file for file in edges if file in reached(file))


def compiled_imports(text, known):
    """The package's files that a compiled one imports, in Cython as in Python."""
    statement = r"^ *from (drift[\w.]*) c?import ([^\n(]+|\([^)]*\))"
    for module, names in re.findall(statement, text, re.MULTILINE):
        result = {f"{module}.{name}" for name in re.findall(r"\w+", names)}
        yield from result & known or {module} & known


@cache
def all_imports():
    """Of each file of the package those that it imports, of types only and in Cython, too.

    What a file is compiled from, with all that is included, counts as that file, and so do stubs.
    """
    files = [path for path in PACKAGE.rglob("*.py*") if path.suffix in {".pyx", ".pyi"}]
    named = {
        path: ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in files
    }
    known = trees().keys() | set(named.values())
    edges = {name: set(imported(tree, name.split("."), known)) for name, tree in trees().items()}
    for path, name in named.items():
        text = path.read_text("utf-8")
        if path.suffix == ".pyi":
            result = imported(ast.parse(text), name.split("."), known)
        else:
            parts = re.findall(r'^include "(\w+\.pxi)"', text, re.MULTILINE)
            texts = [
                text,
                *(part.read_text("utf-8") for part in path.parent.glob("*.pxi") if parts),
            ]
            result = (other for each in texts for other in compiled_imports(each, known))
        edges.setdefault(name, set()).update(result)
    return {name: others - {name} for name, others in edges.items()}


def test_no_file_imports_itself_through_others():
    assert circles(all_imports()) == []


def test_the_models_packages_import_downwards():
    order = ["_template", "_batch", "_tracker", "_state", "_linalg", "_store", "_base"]
    wrong = [
        f"{name} imports {other}"
        for name, others in all_imports().items()
        for other in others
        for above, below in combinations(order, 2)
        if name.startswith(f"drift.models.{below}") and other.startswith(f"drift.models.{above}")
    ]
    assert not wrong


@pytest.mark.parametrize("package", ["_batch", "_store", "_template"])
def test_a_packages_files_import_only_those_above_them_in_its_table(package):
    package = f"drift.models.{package}"
    text = ast.get_docstring(trees()[package])
    order = [f"{package}.{name}" for name in re.findall(r"^``(\w+)``", text, re.MULTILINE)]
    assert set(order) == {name for name in all_imports() if name.startswith(f"{package}.")}
    wrong = [
        f"{above} imports {below}"
        for above, below in combinations(order, 2)
        if below in all_imports()[above]
    ]
    assert not wrong


@pytest.mark.sources
def test_what_compiled_files_import_is_seen():
    edges = all_imports()
    assert edges["drift.models._tracker.core"] >= {
        *("drift.models._tracker.tables", "drift.models._store.built"),
        "drift.models._base.rows",
    }
    assert "drift.models._base.rows" in edges["drift.models._store.columns"]


def test_circles_are_seen():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == ["b", "c"]
    code = "if TYPE_CHECKING:\n    from p import a\nresolve_name('p.b:f')\nfrom p.c import d"
    assert set(imported(ast.parse(code), ["p", "e"], {"p", "p.a", "p.b", "p.c"})) == {
        *("p.a", "p.b", "p.c")
    }


def test_consumers_know_models_only_as_what_a_checkpoint_holds():
    knowing = {
        module
        for module, tree in trees().items()
        if module.startswith("drift.consumers")
        and any(name.startswith("drift.models") for name in imports(tree))
    }
    assert knowing <= {
        f"drift.consumers{name}"
        for name in ("", ".checkpoints.agreement", ".checkpoints.checkpoint")
    }


def without_types(tree):
    """What happens at run time."""
    body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    ]
    return ast.Module(body, [])


def test_each_heavy_library_has_one_owner():
    wrong = [
        f"{module} imports {name}"
        for module, tree in trees().items()
        for name in imports(without_types(tree))
        if module not in OWNERS.get(name.split(".")[0], {module})
    ]
    assert not wrong


def public_modules():
    for info in pkgutil.walk_packages([str(PACKAGE)], "drift."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            yield info.name


def test_public_names_exist():
    for name in public_modules():
        module = importlib.import_module(name)
        assert [public for public in module.__all__ if not hasattr(module, public)] == [], name


def test_the_registry_is_complete():
    exported = importlib.import_module("drift.models")
    classes = {
        name
        for name in exported.__all__
        if isinstance(getattr(exported, name), type)
        and issubclass(getattr(exported, name), exported.KernelModel)
    }
    templates = {"KernelClassifier", "KernelModel", "MulticlassKernelClassifier"}
    assert set(MODELS) == classes - templates
    assert list(MODELS) == sorted(MODELS)
    assert all(MODELS[name] is getattr(exported, name) for name in MODELS)


def test_type_checkers_know_the_names_that_there_are():
    tree = ast.parse((PACKAGE / "models" / "__init__.py").read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    known = {alias.asname: node.module for node in block.body for alias in node.names}
    exported = importlib.import_module("drift.models")
    assert known.keys() == set(exported.__all__)
    assert all(hasattr(importlib.import_module(known[name]), name) for name in known)
    assert dir(exported) == sorted(exported.__all__)


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )


def test_what_needs_no_model_imports_neither_numpy_nor_river():
    loaded = run(
        "import drift, drift.kernels, drift.models, drift.streams, sys\n"
        "print([m for m in ('numpy', 'pandas', 'scipy', 'narwhals', 'river') if m in sys.modules])"
    )
    assert loaded.stdout.strip() == "[]"


def test_a_prediction_needs_no_pandas():
    loaded = run(
        "import drift.features, drift.models, sys\n"
        "x, model, deviation = {'a': 1.0}, drift.models.RBP(), drift.features.RecentDeviation()\n"
        "model.learn_one(x, True), model.predict_one(x)\n"
        "deviation.learn_one(x), deviation.transform_one(x)\n"
        "print('pandas' in sys.modules)"
    )
    assert loaded.stdout.strip() == "False"


@pytest.mark.sources
def test_ci_fails_where_it_lacks_an_interpreter():
    pytest.importorskip("nox")
    code = "import nox, noxfile; assert nox.options.error_on_missing_interpreters"
    env = {**os.environ, "CI": "true"}
    subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, env=env, check=True)


def test_code_of_judged_mutants_stands_where_the_list_says():
    with (PACKAGE.parent / "tools/mutants.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            old = row["change"].split(" + ")[0].removeprefix("- ")
            text = (PACKAGE.parent / row["module"]).read_text(encoding="utf-8")
            assert " ".join(old.split()) in " ".join(text.split()), row


def test_scripts_beside_a_clone_find_the_package_and_not_the_folder(tmp_path):
    (tmp_path / "drift").mkdir()
    actual = subprocess.run(
        [sys.executable, "-c", "import drift; print(drift.__version__)"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert actual.stdout == f"{drift.__version__}\n"


def test_without_the_extension_the_models_work_and_say_what_it_costs():
    result = run(
        "import sys\n"
        "sys.modules['drift.models._store.columns'] = None\n"
        "import drift.models\n"
        "model = drift.models.LBP()\n"
        "model.learn_one({'a': 1.0}, True)\n"
        "print(drift.models.compiled, model.predict_one({'a': 2.0}))"
    )
    assert result.stdout.strip() == "False True"
    assert "RuntimeWarning: drift.models runs without its compiled extension" in result.stderr


@pytest.mark.skipif(not compiled, reason="there is nothing compiled to leave out")
def test_a_build_without_the_trackers_core_works_and_says_what_it_costs():
    result = run(
        "import sys\n"
        "sys.modules['drift.models._tracker.core'] = None\n"
        "import drift.models\n"
        "models = drift.models.LBP(), drift.models.Tracker()\n"
        "for model in models:\n"
        "    model.learn_one({'a': 1.0}, True)\n"
        "print(drift.models.compiled, [model.predict_one({'a': 2.0}) for model in models])"
    )
    assert result.stdout.strip() == "False [True, True]"
    assert "The Tracker takes some 200 times as long" in result.stderr


@pytest.mark.skipif(not compiled, reason="the Tracker has one core then")
def test_a_core_of_another_version_is_refused_with_the_remedy():
    result = run(
        "import sys, types\n"
        "import drift.models\n"
        "old = types.ModuleType('drift.models._tracker.core')\n"
        "old.__dict__.update({'__file__': 'core.so', '__version__': '0.2.9'})\n"
        "sys.modules[old.__name__] = old\n"
        "try:\n"
        "    drift.models.Tracker\n"
        "except RuntimeError as error:\n"
        "    print(error)"
    )
    assert "core.so is that of drift 0.2.9, " in result.stdout
    assert "pip install -e ." in result.stdout


def test_an_extension_of_another_version_is_refused_with_the_remedy():
    result = run(
        "import sys, types\n"
        "old = types.ModuleType('drift.models._store.columns')\n"
        "old.__dict__.update(__file__='columns.so', __version__='0.0.1')\n"
        "sys.modules[old.__name__] = old\n"
        "try:\n"
        "    import drift.models\n"
        "    drift.models.LBP()\n"
        "except RuntimeError as error:\n"
        "    print(error)"
    )
    assert "columns.so is that of drift 0.0.1, " in result.stdout
    assert "pip install -e ." in result.stdout


def test_workers_do_not_repeat_what_running_without_the_extension_costs(tmp_path):
    hidden = "import sys\nsys.modules['drift.models._store.columns'] = None\n"
    (tmp_path / "sitecustomize.py").write_text(hidden, encoding="utf-8")
    result = run(
        "from joblib import Parallel, delayed\n"
        "from drift.models import LBP\n"
        "models = Parallel(n_jobs=2)(delayed(LBP.clone)(LBP(budget=b)) for b in (1, 2))\n"
        "print([type(model._supports.store).__module__ for model in models])",
        PYTHONPATH=f"{tmp_path}{os.pathsep}{PACKAGE.parent}",
    )
    assert result.stdout.strip() == str(["drift.models._store.plain"] * 2)
    assert result.stderr.count("without its compiled extension") == 1


def test_the_type_of_columns_can_come_from_the_environment():
    code = "from drift.models import RBP; print(RBP()._supports.store.wide)"
    assert run(code, DRIFT_COLUMNS="float64").stdout.strip() == "True"
    assert run(code, DRIFT_COLUMNS="").stdout.strip() == "False"


def parameters_of(path):
    """The parameters of each public method of `ColumnStore` in a Python file or stub."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (store,) = (node for node in tree.body if getattr(node, "name", "") == "ColumnStore")
    return {
        node.name: [part.arg for part in (*node.args.args[1:], *node.args.kwonlyargs)]
        for node in store.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }


def parameters_of_layers(folder):
    """The same of the compiled store, whose methods Python cannot inspect."""
    layers = ("slots", "point", "scores", "steps", "batches", "changes")
    files = [folder / "columns.pyx", *(folder / f"columns_{layer}.pxi" for layer in layers)]
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    method = r"^    (?:def|cpdef|cpdef double) ([a-z]\w*)\((?:self|cls)(.*)\)"
    return {
        name: [
            part.partition("=")[0].split()[-1] for part in rest.replace(", *", "").split(",")[1:]
        ]
        for name, rest in re.findall(method, text, re.MULTILINE)
    }


@pytest.mark.sources
def test_the_stores_have_the_same_methods_and_parameters():
    folder = PACKAGE / "models" / "_store"
    expected = parameters_of(folder / "columns.pyi")
    assert len(expected) > 25
    assert parameters_of_layers(folder) == expected
    found = parameters_of(folder / "plain.py")
    for name in ("start", "undo", "finish"):  # for the compiled guard
        assert expected.pop(name) == []
    assert found.pop("rollback_copy") == found.pop("capacity") == []  # for its guard; a property
    assert list(found.items()) == list(expected.items())  # and in the same order
