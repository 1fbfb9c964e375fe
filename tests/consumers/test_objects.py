"""Checkpoints in a store that speaks S3: who wins a put, and answers that are lost."""

import asyncio
import sys
import time

import pytest
from click.testing import CliRunner

from drift.cli import app
from drift.consumers import CheckpointFolder
from drift.consumers.checkpoints import files, objects
from drift.consumers.checkpoints.objects import as_path
from drift.consumers.crash_points import install, remove
from drift.errors import CheckpointError, FencedError, MissingExtraError, ParameterError
from drift.models import LBP

TP = ("news", 0)


def save(folder, epoch, n):
    return folder.save(TP, epoch, LBP(budget=3), {TP: n}).id


def test_of_hundreds_who_create_one_object_at_once_one_wins_each_time(s3, bucket):
    name = bucket.split("/")[2]
    as_path(bucket)
    store = objects._store(name)

    async def create(key, number):
        try:
            await store.put_async(key, str(number).encode(), mode="create")
        except FileExistsError:
            return None
        except Exception as error:
            if type(error).__name__ == "AlreadyExistsError":
                return None
            raise
        return key, number

    async def race():
        keys = [f"epoch-{n % 10}" for n in range(300)]
        return await asyncio.gather(*(create(key, n) for n, key in enumerate(keys)))

    won = dict(filter(None, asyncio.run(race())))
    assert len(won) == 10
    assert {f"{name}/{key}": str(n).encode() for key, n in won.items()} == {
        key: data for key, data in s3.objects.items() if key.startswith(name)
    }


def test_a_put_whose_answer_is_lost_is_known_as_ones_own(s3, bucket):
    path = as_path(bucket) / "object"
    s3.lose, lost = 1.0, s3.lost
    path.create(b"ours")
    assert s3.lost == lost + 1
    assert path.read_bytes() == b"ours"
    with pytest.raises(FileExistsError):
        path.create(b"theirs")
    assert path.read_bytes() == b"ours"


def test_claims_and_saves_whose_answers_are_lost_count_once(s3, bucket):
    folder = CheckpointFolder(bucket)
    s3.lose = 1.0
    epoch, _ = folder.claim(TP)
    assert epoch == 1
    assert [save(folder, epoch, n) for n in (10, 20)] == ["1-1", "1-2"]
    other = CheckpointFolder(bucket)
    assert (other.claim(TP).epoch, other.newest(TP).offsets) == (2, {TP: 20})
    with pytest.raises(FencedError, match="our epoch is 1 and the newest 2"):
        save(folder, epoch, 30)


def test_a_store_that_puts_over_what_exists_is_refused(s3, bucket, monkeypatch):
    monkeypatch.setattr(objects, "_CHECKED", set())
    put = s3.put
    with monkeypatch.context() as patch:
        patch.setattr(s3, "put", lambda key, data, *, only_new: put(key, data, only_new=False))
        for _ in range(2):
            with pytest.raises(
                CheckpointError, match=r"s3://.*news-0: .* \(If-None-Match: \*\), so"
            ):
                CheckpointFolder(bucket).claim(TP)
    assert not s3.objects
    assert CheckpointFolder(bucket).claim(TP).epoch == 1
    assert [key.rpartition("/")[2] for key in s3.objects] == ["epoch-00000001"]
    counted = s3.refused
    CheckpointFolder(bucket).claim(("news", 1))
    assert s3.refused == counted  # once a process


def test_a_store_that_is_away_is_an_error_that_passes(s3, bucket):
    folder = CheckpointFolder(bucket)
    epoch, _ = folder.claim(TP)
    assert save(folder, epoch, 10) == "1-1"
    install("checkpoint.encoded", lambda: setattr(s3, "answers", 503))
    try:
        with pytest.raises(CheckpointError, match="cannot be") as refused:
            save(folder, epoch, 20)
        # What passes has this cause: a worker that claims waits for it.
        assert isinstance(refused.value.__cause__, OSError)
        with pytest.raises(CheckpointError, match="cannot be read") as refused:
            folder.claim(TP)
        assert isinstance(refused.value.__cause__, OSError)
        for s3.answers in (401, 403, 404, 301):  # of a key, a right, the bucket, the region
            with pytest.raises(CheckpointError, match="cannot be read") as refused:
                folder.claim(TP)
            assert isinstance(refused.value.__cause__, PermissionError)
    finally:
        remove("checkpoint.encoded")
    s3.answers = None
    assert save(folder, epoch, 30) == "1-2"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"AWS_ALLOW_HTTP": "false"}, "http.*or set AWS_ALLOW_HTTP=true"),
        ({"AWS_ENDPOINT_URL": "minio:9000"}, "AWS_ENDPOINT_URL must be http://host:port"),
        ({"AWS_ENDPOINT_URL": "http://minio:90000"}, "AWS_ENDPOINT_URL must be http://host:port"),
        ({"AWS_ENDPOINT_URL_S3": "ftp://minio"}, "AWS_ENDPOINT_URL_S3 must be http://host:port"),
        ({"AWS_SECRET_ACCESS_KEY": None}, "Missing SecretAccessKey"),
    ],
)
def test_an_environment_that_names_no_store_is_refused_at_once(s3, monkeypatch, changed, said):
    for name, value in (s3.environment | changed).items():
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    objects._store.cache_clear()
    with pytest.raises(ParameterError, match=said):
        CheckpointFolder("s3://refused/checkpoints")


def test_https_where_http_is_spoken_is_somebodys_to_mend(s3, monkeypatch):
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value.replace("http:", "https:"))
    monkeypatch.setattr(objects, "_RETRIES", {"max_retries": 0})
    objects._store.cache_clear()
    with pytest.raises(CheckpointError, match="cannot be read") as refused:
        CheckpointFolder("s3://refused/checkpoints").claim(TP)
    objects._store.cache_clear()
    assert isinstance(refused.value.__cause__, PermissionError)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("failed to lookup address information: Name or service not known", PermissionError),
        ("failed to lookup address information: Temporary failure in name resolution", OSError),
        ("invalid peer certificate: UnknownIssuer", PermissionError),
        ("tcp connect error, Connection refused", OSError),
    ],
)
def test_errors_of_connections_are_told_by_who_mends_them(text, kind):
    exceptions = pytest.importorskip("obstore.exceptions")
    with pytest.raises(OSError, match="error sending request") as told, objects._as_os_errors():
        raise exceptions.GenericError(f"error sending request\n\nDebug source: {text}")
    assert type(told.value) is kind


@pytest.mark.parametrize(("answer", "code"), [(403, 2), (404, 2), (503, 1)])
def test_a_worker_that_cannot_look_for_its_model_says_who_mends_that(s3, bucket, answer, code):
    s3.answers = answer
    line = ["consume", "t", "--group", "g", "--checkpoints", bucket, "--bootstrap", "127.0.0.1:1"]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == code, done.output
    assert f"error: {bucket}: cannot be read" in done.output


def test_a_late_put_of_an_epoch_before_counts_for_no_longer_than_in_a_folder(bucket):
    folder = CheckpointFolder(bucket)
    old, _ = folder.claim(TP)
    save(folder, old, 10)
    files = folder._files(TP)
    late = files.file(old, 2), files.file(old, 1).read_bytes()
    new, _ = folder.claim(TP)
    save(folder, new, 30)
    late[0].create(late[1])
    assert folder.newest(TP).offsets == {TP: 30}


def test_a_partition_is_taken_over_in_time_from_a_store_that_is_far(s3, bucket):
    folder = CheckpointFolder(bucket)
    epoch, _ = folder.claim(TP)
    for n in range(4):
        save(folder, epoch, n)
    s3.delay = 0.1
    started = time.monotonic()
    assert CheckpointFolder(bucket).claim(TP).checkpoint.offsets == {TP: 3}
    assert time.monotonic() - started < 5


def test_the_commands_look_into_a_store(bucket):
    folder = CheckpointFolder(bucket, {"topic": "news"})
    epoch, _ = folder.claim(TP)
    save(folder, epoch, 17)

    def said(*command):
        done = CliRunner().invoke(app, ["checkpoint", *command])
        assert done.exit_code == 0, done.output
        return done.output

    assert said("show", bucket).startswith("news:0 at 17  1-1")
    file = str(folder._files(TP).file(1, 1))
    assert "news:0 17" in said("show", file)
    assert said("verify", file) == f"{file}: sound\n"
    said("adopt", bucket, "--topic", "news", "--offset", "3")
    assert [h["offsets"] for _, h in files.newest(as_path(bucket))] == [[["news", 0, 3]]]


def test_partitions_of_a_store_come_in_the_order_of_their_names(bucket):
    folder = CheckpointFolder(bucket)
    for key in (("b", 0), ("a", 1), ("a", 0)):
        epoch, _ = folder.claim(key)
        folder.save(key, epoch, LBP(2), {key: 1})
    found = [partition.path.name for partition, _ in files.newest(as_path(bucket))]
    assert found == ["a-0", "a-1", "b-0"]
    assert sorted(map(as_path, ["s3://b/2", "s3://b/1", "s3://a/3"])) == [
        *map(as_path, ["s3://a/3", "s3://b/1", "s3://b/2"])
    ]


def test_a_url_has_a_bucket():
    with pytest.raises(ParameterError, match="s3:// names no bucket"):
        as_path("s3://")


def test_without_obstore_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(MissingExtraError, match=r"\.\[s3\]"):
        as_path("s3://another")
