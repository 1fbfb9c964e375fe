"""The image without a container runtime: each step of the Dockerfile, on a copy of /.

The copy is an overlay in a mount namespace of its own. This machine stands for the base image, and
what the steps change of it, packages and users included, is gone with the test.
"""

import json
import os
import re
import shlex
import shutil
import subprocess

import pytest

from tests.deploy.files import DEPLOY

pytestmark = pytest.mark.slow

MOUNT = """\
mount -t overlay overlay -o lowerdir=/,upperdir={0}/upper,workdir={0}/work {0}/root
mount --rbind /dev {0}/root/dev
mount -t proc proc {0}/root/proc
cp --remove-destination "$(realpath /etc/resolv.conf)" {0}/root/etc/resolv.conf
"""


def stages():
    """Return the steps of each stage: instruction and what it is given."""
    text = (DEPLOY / "Dockerfile").read_text("utf-8").replace("\\\n", "")
    steps = [line.split(" ", 1) for line in text.splitlines() if line and line[0] != "#"]
    starts = [i for i, (name, _) in enumerate(steps) if name == "FROM"]
    return [steps[a:b] for a, b in zip(starts, [*starts[1:], None], strict=True)]


def context(folder):
    """Copy what the build is given: what the ignore file has no line against."""
    lines = DEPLOY.joinpath("Dockerfile.dockerignore").read_text("utf-8").split()
    ignored = [line.rpartition("/")[2] for line in lines[1:] if line[0] != "!"]
    for name in (line[1:] for line in lines if line[0] == "!"):
        source = DEPLOY.parent / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns(*ignored))
        else:
            folder.mkdir(exist_ok=True)
            shutil.copy(source, folder / name)
    return folder


class Stage:
    """A stage as a script, and what its containers are started with."""

    def __init__(self, folder, steps, context, before):
        self.folder = folder
        for name in ("upper", "work", "root"):
            (folder / name).mkdir(parents=True)
        self.user, self.place, self.start = "0", "/", {}
        self.environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        self.lines = []
        for name, given in steps:
            match name:
                case "RUN":
                    self.lines.append(self.inside("sh", "-ec", given))
                case "COPY":
                    self.copy(given, context, before)
                case "ENV":
                    for pair in given.split():
                        key, _, value = pair.partition("=")
                        self.environment[key] = value.replace("$PATH", self.environment["PATH"])
                case "WORKDIR":
                    self.place = given
                    self.lines.append(f"mkdir -p {folder}/root{given}")
                case "USER":
                    self.user = given
                case "ENTRYPOINT" | "CMD":
                    self.start[name] = json.loads(given)
                case _:
                    assert name in {"FROM", "EXPOSE"}, name

    def inside(self, *command):
        """Return the line that runs a command in a container of it."""
        pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        wait = {"DRIFT_KAFKA_BOOTSTRAP_TIMEOUT_MS": "1000"}
        given = {**pip, **wait, **self.environment}
        variables = [f"{name}={value}" for name, value in given.items()]
        enter = ["chroot", f"--userspec={self.user}:{self.user}", f"{self.folder}/root"]
        there = ["sh", "-ec", f'cd {self.place}; exec "$@"', "-", *command]
        return shlex.join([*enter, "env", "-i", *variables, *there])

    def copy(self, given, source, before):
        *names, target = given.split()
        if names[0] == "--from=build":
            del names[0]
            source = before.folder / "upper"
        if target == "./":
            target = self.place
        elif target[0] != "/":
            target = f"{self.place}/{target}"
        target = f"{self.folder}/root{target}"
        self.lines += [f"cp -a {source}/{name} {target}" for name in names]

    def run(self, lines, seconds=None):
        """Run lines; apt and pip give up by themselves, however long a busy machine compiles."""
        script = "\n".join(["set -e", MOUNT.format(self.folder), *lines])
        command = ["unshare", "--mount", "sh", "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        return done.returncode, done.stdout + done.stderr


def test_the_image_builds_and_its_worker_starts_as_a_user_without_rights(tmp_path):
    first, second = stages()
    given = context(tmp_path / "context")
    build = Stage(tmp_path / "build", first, given, None)
    status, output = build.run(["true"])
    if status:
        pytest.skip(f"no overlay over / here: {output.strip()[-200:]}")
    status, output = build.run(build.lines)
    assert status == 0, output

    image = Stage(tmp_path / "image", second, given, build)
    status, output = image.run(image.lines)
    assert status == 0, output
    assert image.start["CMD"][:3] == ["consume", "--config", "/etc/drift/worker.toml"]
    assert int(image.user) > 0
    settings = tmp_path / "image/upper/etc/drift/worker.toml"
    settings.parent.mkdir()
    shutil.copy(DEPLOY / "worker.toml", settings)

    def container(*command):
        return image.run([image.inside(*command)], 600)

    drift = image.start["ENTRYPOINT"]
    assert container(*drift, "models")[0] == 0
    status, output = container(*drift, *image.start["CMD"], "--bootstrap", "127.0.0.1:1")
    assert status == 1  # a broker may come, so that it is to be started again
    assert "127.0.0.1:1" in output
    assert container("touch", "/var/lib/drift/file") == (0, "")
    status, output = container("touch", "/opt/drift/file")
    assert re.search("Permission denied", output)
    assert container("sh", "-c", "command -v pip || true")[1].startswith("/opt/drift/")
