"""S3-compatible stores for checkpoints; the only module that imports obstore.

Puts are atomic, and a list shows earlier puts. Of two that create one object, the store lets one
win: ``If-None-Match: *``.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeAlias

from drift._checks import check_address
from drift.errors import CheckpointError, ParameterError, needing, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

__all__ = ["AnyPath", "ObjectPath", "as_path"]

_SCHEME = "s3://"
#: Variables that name the store's address.
_ADDRESSES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
#: Errors that somebody has to fix: a key or right, the bucket, the region; the
#: host, its certificate, or https where it speaks http.
_REFUSED = re.compile(
    r"\b40[134] (Unauthorized|Forbidden|Not Found)\b|incorrectly configured"
    r"|Name or service not known|nodename nor servname|invalid peer cert|InvalidContentType"
)
#: A worker that waits for its store learns nothing, and after 30 s its group would be right to ask.
_TIMES = {"timeout": timedelta(seconds=20), "connect_timeout": timedelta(seconds=5)}
#: Buckets whose store has been seen to refuse what exists.
_CHECKED: set[str] = set()
_RETRIES: dict[str, Any] = {"max_retries": 4, "retry_timeout": timedelta(seconds=20)}


def as_path(path: str | PathLike[str] | ObjectPath) -> AnyPath:
    """Return where checkpoints are: a path, or for ``s3://bucket/prefix`` a store's.

    Raises
    ------
    ParameterError
        If it names no bucket, or the environment no store that can be reached.
    MissingExtraError
        If obstore is not installed.

    Examples
    --------
    >>> as_path("checkpoints").name
    'checkpoints'
    """
    if isinstance(path, ObjectPath):
        return path
    if not str(path).startswith(_SCHEME):
        return Path(path)
    bucket, _, key = str(path).removeprefix(_SCHEME).partition("/")
    if not bucket:
        raise ParameterError(f"{path} names no bucket: s3://bucket/prefix")
    _store(bucket)
    return ObjectPath(bucket, key.strip("/"))


def _obstore() -> Any:
    """Return obstore, which only a store of objects needs."""
    with needing("obstore", "s3"):
        import obstore.exceptions  # noqa: PLC0415 - an extra
        import obstore.store  # noqa: PLC0415 - an extra
    return obstore


@lru_cache
def _store(bucket: str) -> Any:
    obstore = _obstore()
    allow_http = os.environ.get("AWS_ALLOW_HTTP") == "true"
    for name in _ADDRESSES:
        address = os.environ.get(name)
        if address is None:
            continue
        check_address(name, address)
        if address.startswith("http:") and not allow_http:
            raise ParameterError(
                f"{name} is {address}: give an https:// address, or set AWS_ALLOW_HTTP=true where "
                "others may read what is stored on its way"
            )
    make: Any = obstore.store.S3Store.from_url
    try:
        return make(
            _SCHEME + bucket,
            # obstore reads all variables but this one.
            client_options={**_TIMES, "allow_http": allow_http},
            retry_config=_RETRIES,
        )
    except obstore.exceptions.BaseError as problem:
        raise ParameterError(f"{_SCHEME}{bucket}: {one_line(str(problem))}") from None


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Turn a store's errors into those of a file system."""
    errors = _obstore().exceptions
    try:
        yield
    except errors.AlreadyExistsError as problem:
        raise FileExistsError(str(problem)) from None
    except errors.BaseError as problem:
        # Its class says so for an object, and not for a list.
        if refused := _REFUSED.search(str(problem)):
            raise PermissionError(one_line(f"{refused[0]}: {problem}")) from None
        raise OSError(one_line(f"{type(problem).__name__}: {problem}")) from None


@dataclass(frozen=True, order=True)
class ObjectPath:
    """An object of a bucket, or a prefix of several; a small `pathlib.Path`.

    Errors are those of files: OSError, with FileNotFoundError and FileExistsError below it.

    Parameters
    ----------
    bucket
        The bucket.
    key
        The object, or the folder that its name makes.
    """

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"{_SCHEME}{self.bucket}/{self.key}"

    def __truediv__(self, name: str) -> ObjectPath:
        return ObjectPath(self.bucket, f"{self.key}/{name}".lstrip("/"))

    @property
    def name(self) -> str:
        """The last part."""
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> ObjectPath:
        """Everything before the last part."""
        return ObjectPath(self.bucket, self.key.rpartition("/")[0])

    def iterdir(self) -> Iterator[ObjectPath]:
        """Yield what is in the folder, folders first."""
        with _as_os_errors():
            found = _store(self.bucket).list_with_delimiter(self.key or None)
        for key in [*found["common_prefixes"], *(item["path"] for item in found["objects"])]:
            yield ObjectPath(self.bucket, key.strip("/"))

    def is_dir(self) -> bool:
        """Whether the folder has anything."""
        return any(self.iterdir())

    def read_bytes(self) -> bytes:
        """Return the object."""
        with _as_os_errors():
            return bytes(_store(self.bucket).get(self.key).bytes())

    def create(self, data: bytes) -> None:
        """Create the object, unless the name exists.

        The answer to a successful put may be lost and the put repeated, which then finds the
        object: it is ours if it has these bytes, so no two callers may write the same.

        Raises
        ------
        FileExistsError
            If there is another one.
        OSError
            If that is unknown.
        """
        try:
            with _as_os_errors():
                _store(self.bucket).put(self.key, data, mode="create", use_multipart=False)
        except OSError:
            with suppress(OSError):
                if self.read_bytes() == data:
                    return
            raise

    def check_conditions(self) -> None:
        """Refuse, once a process and bucket, a store that creates an object twice.

        Raises
        ------
        CheckpointError
            If it does: two workers could claim one epoch.
        OSError
            If that is unknown.
        """
        if self.bucket in _CHECKED:
            return
        probe = self / f"probe-{token_hex(8)}"
        try:
            probe.create(b"first")
            with suppress(FileExistsError):
                probe.create(b"second")
                raise CheckpointError(
                    f"{self}: the store puts an object over another one, though it is asked not to "
                    "(If-None-Match: *), so that two workers could learn into one model: take a "
                    "store that obeys, as Amazon S3, Cloudflare R2 or MinIO do, or a shared folder"
                )
        finally:
            with suppress(OSError):
                probe.unlink()
        _CHECKED.add(self.bucket)

    def unlink(self) -> None:
        """Remove the object, if there is one."""
        with _as_os_errors():
            _store(self.bucket).delete(self.key)


#: Where checkpoints may be.
AnyPath: TypeAlias = Path | ObjectPath
