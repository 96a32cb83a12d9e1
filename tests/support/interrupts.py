"""Child processes that can be interrupted, also when the tests themselves run in the background of
a shell or under nohup, which ignore them there; and the wait for what they do.
"""

import contextlib
import resource
import signal
import subprocess
import time

import psutil

LONG = 300.0


def start(command, **options):
    """``subprocess.Popen`` with text pipes for output, and the signals of a terminal at their
    defaults.
    """

    def as_in_a_terminal():  # one thread, and nothing but this
        for sent in (signal.SIGINT, signal.SIGHUP):
            signal.signal(sent, signal.SIG_DFL)

    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=as_in_a_terminal,
        **options,
    )


def end(process, sent):
    """Send the signal until the process ends, as it may be lost just before a read that blocks; its
    return code.
    """
    begin = time.monotonic()
    while time.monotonic() - begin < LONG:
        process.send_signal(sent)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=10)
    raise AssertionError(f"{sent!r} did not end it")


def children(process):
    """Those that a process has started, and that live."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [child for child in psutil.Process(process.pid).children() if not has_ended(child)]
    return []


def has_ended(process):
    """Whether a process has ended, perhaps without anybody who has asked how."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def kill_with_children(process):
    """Kill a process, and wait for its children to end by themselves."""
    there = children(process)
    process.kill()
    process.communicate(timeout=LONG)
    wait_for(lambda: all(map(has_ended, there)))


@contextlib.contextmanager
def largest_file(size):
    """As a full disk has it: no file can grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def wait_for(holds):
    """Until it holds."""
    begin = time.monotonic()
    while not holds():
        assert time.monotonic() - begin < LONG
        time.sleep(0.005)
