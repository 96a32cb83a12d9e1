"""Who works on what: a claim is a file that only one process can make, and that lives as long as
its maker does.

In: names of things to do. Out: yes or no. The maker refreshes its claims; who waits for one learns
    that its maker is dead at once on the same machine, and else when the claim was not refreshed
    for ``LEASE`` seconds of its own clock. Should two ever have a claim, on a store that cannot
    create in one step say, both write the same bytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from numtok.corpus.jobs.folder import OWN, Folder
from numtok.errors import JobError, NumtokError
from numtok.options import conform

LEASE, BEAT = 60.0, 10.0  # seconds
SUFFIX = ".claim"


@dataclass(frozen=True)
class Claim:
    """Who has it.

    Attributes:
        host: of the process, for people.
        machine: where ``pid`` means something.
        pid, started: of the process; when that was, as the system counts it.
        run: of the command that it works for.
        since: the time, in UTC.
        error: why it failed, if it did: nobody works on it then.
    """

    host: str
    machine: str
    pid: int
    started: str
    run: str
    since: str
    error: str | None = None

    def is_dead(self) -> bool:
        """Whether it is known that its process is gone."""
        return self.machine == _machine() and _start_of(self.pid) != self.started

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


@dataclass(frozen=True)
class Status:
    """How far a job is, shard by shard.

    Attributes:
        shards: how many there are. finished: whether the manifest is there.
        done: numbers of shards.
        running: shards that somebody works on: who, on which machine, since when.
        failed: shards that could not be made: why, with file and line.
    """

    shards: int
    finished: bool
    done: list[int] = field(default_factory=list)
    running: dict[int, Claim] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)


class Claims:
    """The claims in one folder, by one process.

    Args:
        folder: of the job.
        run: names the command that this process works for.
    """

    def __init__(self, folder: Folder, run: str) -> None:
        self.folder, self.run = folder, run
        self._held: dict[str, bytes] = {}
        self._seen: dict[str, tuple[bytes, float]] = {}
        self._lock = threading.Lock()
        self._beating = False

    def take(self, name: str) -> bool:
        """Claim it, if nobody has."""
        content = self._content(None)
        if not self.folder.create(_file(name), content):
            return False
        with self._lock:
            self._held[name] = content
            if not self._beating:
                self._beating = True
                threading.Thread(target=self._beat, name="numtok-claims", daemon=True).start()
        return True

    def release(self, name: str, error: str | None = None) -> None:
        """Give it up; with an error, so that nobody of this run takes it again."""
        with self._lock:
            self._held.pop(name, None)
        if error is None:
            self.folder.remove(_file(name))
        else:
            self.folder.replace(_file(name), self._content(error))

    @contextlib.contextmanager
    def hold(self, name: str) -> Iterator[None]:
        """Have it, once those who have it are done."""
        while not self.take(name):
            there = self.read(name)
            if there is not None and self.is_over(name, there):
                self.folder.remove(_file(name))
            time.sleep(0.1)
        try:
            yield
        finally:
            self.release(name)

    def all(self) -> dict[str, Claim]:
        """Every claim that there is, by what it is on."""
        names = [
            name.removesuffix(SUFFIX) for name in self.folder.names(OWN) if name.endswith(SUFFIX)
        ]
        found = self.folder.each(self.read, names)
        return {name: claim for name, claim in zip(names, found, strict=True) if claim is not None}

    def read(self, name: str) -> Claim | None:
        """Who has it; None if nobody has."""
        stored = self.folder.read(_file(name))
        if stored is None:
            return None
        try:
            return conform(json.loads(stored), Claim, name, JobError)
        except (ValueError, RecursionError, JobError):  # half written, by whoever that is
            return Claim("an unknown machine", "", 0, "", "", "?")

    def is_over(self, name: str, claim: Claim) -> bool:
        """Whether nobody works on it any more: its process is gone, or it failed in another run."""
        if claim.error is not None:
            return claim.run != self.run
        if claim.is_dead():
            return True
        now, state = time.monotonic(), self.folder.state(_file(name))
        if self._seen.get(name, (b"", 0.0))[0] != state:
            self._seen[name] = state, now
        return now - self._seen[name][1] > LEASE

    def sweep(self) -> tuple[dict[str, Claim], dict[str, Claim]]:
        """Remove claims that are over: (those that stay, those that were removed)."""
        there = self.all()
        over = {name: claim for name, claim in there.items() if self.is_over(name, claim)}
        for name in over:
            self.folder.remove(_file(name))
        return {name: claim for name, claim in there.items() if name not in over}, over

    def _content(self, error: str | None) -> bytes:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        pid = os.getpid()
        made = Claim(socket.gethostname(), _machine(), pid, _start_of(pid), self.run, now, error)
        return json.dumps(dataclasses.asdict(made)).encode()

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT)
            with self._lock:
                for name, content in self._held.items():
                    with contextlib.suppress(OSError, NumtokError):  # the next may get through
                        self.folder.touch(_file(name), content)


def _file(name: str) -> str:
    return f"{OWN}/{name}{SUFFIX}"


def _machine() -> str:
    """What tells where numbers of processes mean something: the start of the system, and the
    container.
    """
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    return socket.gethostname()


def _start_of(pid: int) -> str:
    """When the process started, as the system counts it; nothing if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return "" if fields[0] in (b"Z", b"X") else fields[19].decode()
    except FileNotFoundError:
        if os.path.exists("/proc/self/stat"):
            return ""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, 0)
        return "there"
    return ""
