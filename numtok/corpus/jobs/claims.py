"""Who works on what: a claim is a file that only one process can make. Its maker refreshes it, and
says in it how far it is; that a maker is dead is known at once on its machine if that runs Linux,
and elsewhere once ``LEASE`` seconds went by without that. Should two ever have the same claim, both
write the same bytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
import threading
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from numtok import locations
from numtok.corpus.jobs.folder import OWN, Folder
from numtok.corpus.summary import Progress
from numtok.errors import JobError, NumtokError
from numtok.options import conform

LEASE, BEAT = 60.0, 10.0  # seconds
BEAT_HERE = 1.0  # where a refreshed claim costs no request to a store
SUFFIX = ".claim"


@dataclass(frozen=True)
class Claim:
    """Who has it, and how far it is."""

    host: str  # for people
    machine: str  # where the number of the process means something; empty if nobody can tell
    pid: int
    started: str  # when the process was, as the system counts it
    run: str  # the command that it works for
    since: str  # in UTC
    beat: int = 0  # another number once it was refreshed
    progress: Progress | None = None
    error: str | None = None  # why it failed, if it did: nobody works on it then
    stop: bool = False  # whether all others would fail alike, as on a full disk

    def is_dead(self) -> bool:
        """Whether it is known that its process is gone."""
        return self.machine == _machine() and _start_of(self.pid) != self.started

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


class Claims:
    """The claims in the folder of a job, by this process, which works for the command ``run``."""

    def __init__(self, folder: Folder, run: str) -> None:
        self.folder, self.run = folder, run
        self._held: dict[str, Claim] = {}
        self._seen: dict[str, tuple[Claim, float]] = {}
        self._lock = threading.Lock()
        self._beating = False

    def take(self, name: str) -> bool:
        """Claim it, if nobody has."""
        now, pid = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), os.getpid()
        claim = Claim(socket.gethostname(), _machine(), pid, _start_of(pid), self.run, now)
        lost = self.folder.remote and name not in self._held  # the answer that it was made
        if not self.folder.create(_file(name), _content(claim)) and not (
            lost and self.read(name) == claim
        ):
            return False
        with self._lock:
            self._held[name] = claim
            if not self._beating:
                self._beating = True
                threading.Thread(target=self._beat, name="numtok-claims", daemon=True).start()
        return True

    def note(self, name: str, progress: Progress) -> None:
        """How far it is; the others learn of that by and by."""
        with self._lock:
            self._held[name] = dataclasses.replace(self._held[name], progress=progress)

    def release(self, name: str, error: str | None = None, stop: bool = False) -> None:
        """Give it up; with an error, so that nobody of this run takes it again."""
        with self._lock:
            claim = self._held.pop(name)
        if error is None:
            self.folder.remove(_file(name))
        else:
            failed = dataclasses.replace(claim, error=error, stop=stop)
            self.folder.replace(_file(name), _content(failed))

    @contextlib.contextmanager
    def hold(self, name: str) -> Iterator[None]:
        """Have it, once those who have it are done."""
        while not self.take(name):
            there = self.read(name)
            if there is not None and self._is_over(name, there):
                self.folder.remove(_file(name))
            time.sleep(0.1)
        try:
            yield
        finally:
            self.release(name)

    def read(self, name: str) -> Claim | None:
        """Who has it; None if nobody has."""
        stored = self.folder.read(_file(name))
        if stored is None:
            return None
        try:
            return conform(json.loads(stored), Claim, name, JobError)
        except (ValueError, RecursionError, JobError):  # half written, by whoever that is
            return Claim("an unknown machine", "", 0, "", "", "?")

    def among(self, names: Collection[str]) -> dict[str, Claim]:
        """Every claim among the files of a job, by what it is on."""
        claimed = [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)]
        found = zip(claimed, locations.each(self.read, claimed, self.folder.remote), strict=True)
        with self._lock:
            return {name: self._held.get(name, claim) for name, claim in found if claim is not None}

    def sweep(self, names: Collection[str]) -> tuple[dict[str, Claim], dict[str, Claim]]:
        """Remove claims that are over: (those that stay, those that were removed)."""
        there = self.among(names)
        over = {name: claim for name, claim in there.items() if self._is_over(name, claim)}
        for name in over:
            self.folder.remove(_file(name))
        return {name: claim for name, claim in there.items() if name not in over}, over

    def _is_over(self, name: str, claim: Claim) -> bool:
        """Whether nobody works on it any more: its process is gone, or it failed in another run."""
        if claim.error is not None:
            return claim.run != self.run
        now = time.monotonic()
        if self._seen.get(name, (None, 0.0))[0] != claim:
            self._seen[name] = claim, now
        return claim.is_dead() or now - self._seen[name][1] > LEASE

    def _beat(self) -> None:
        """Refresh what is held, as long as anything is."""
        while True:
            time.sleep(BEAT if self.folder.remote else BEAT_HERE)
            with self._lock:
                self._beating = bool(self._held)
                if not self._beating:
                    return
                for name, claim in self._held.items():
                    self._held[name] = dataclasses.replace(claim, beat=claim.beat + 1)
                    with contextlib.suppress(OSError, NumtokError):  # the next may get through
                        self.folder.refresh(_file(name), _content(self._held[name]))


def _file(name: str) -> str:
    return f"{OWN}/{name}{SUFFIX}"


def _content(claim: Claim) -> bytes:
    """Of one length, unless an error is told: what is refreshed is written over."""
    return json.dumps(dataclasses.asdict(claim)).encode().ljust(1024)


def _machine() -> str:
    """The start of the system, and the container; nothing on systems other than Linux."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id", "rb") as file:
        return f"{file.read().strip().decode()} {os.readlink('/proc/self/ns/pid')}"
    return ""


def _start_of(pid: int) -> str:
    """When the process started, as Linux counts it; nothing if there is none."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
        return "" if fields[0] in (b"Z", b"X") else fields[19].decode()
    return ""
