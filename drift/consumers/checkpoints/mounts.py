"""Whether a folder is on a disk of this machine."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["network_file_system"]

#: Types of file systems on other machines, as Linux names them; "fuse." may come before.
_NETWORK = {
    *("afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "nfs", "nfs4"),
    *("s3fs", "smb3", "sshfs"),
}
#: Where Linux lists them.
_MOUNTS = Path("/proc/self/mountinfo")


def network_file_system(path: Path) -> str | None:
    """Return the type of the file system that a path is on, if it is another machine's.

    None for one of this machine, and where it cannot be told: Linux alone lists them.
    """
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    here, kind, longest = path.resolve(), "", -1
    for line in lines:  # of several at one place the last is seen
        fields, _, source = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields.split()[4])
        if here.is_relative_to(point) and len(point) >= longest:
            kind, longest = source.split()[0], len(point)
    return kind if kind.removeprefix("fuse.") in _NETWORK else None
