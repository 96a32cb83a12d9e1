"""Virtual environments that know nothing of the checkout, made by uv with the package index that
pip is set up for.

uv links packages out of a cache, where pip unpacks and copies each again for every environment:
seconds instead of minutes."""

import ast
import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from places import ROOT
from uv import find_uv_bin

FROM_OUTSIDE = (
    "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__",
    "PYTHONDONTWRITEBYTECODE",
)  # fmt: skip


def repository_files():
    """What belongs to the repository, relative to its root: tracked files, and new ones that git
    does not ignore.
    """
    command = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split("\0")
    return sorted(name for name in found if name and (ROOT / name).is_file())


def interpreter(version):
    """A Python of this version, such as ``3.12``, that runs: on the path, or one that pyenv keeps."""
    kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for candidate in filter(None, (shutil.which(f"python{version}"), *map(str, kept))):
        asked = [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        if subprocess.run(asked, capture_output=True, text=True).stdout.strip() == version:
            return candidate
    return None


# What pip is told, and what uv calls it. uv reads neither pip's files nor its variables.
UV_OPTIONS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "no-index": "UV_NO_INDEX",
    "cert": "SSL_CERT_FILE",
}


@functools.cache
def index_variables():
    """The variables by which uv, or a build that uses it, finds what pip would find; those of uv
    that are set stay as they are.
    """
    command = [sys.executable, "-m", "pip", "config", "list"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # the best of all indexes, as pip takes it
    found = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_PYTHON_DOWNLOADS": "never"}
    for line in sorted(told.splitlines(), reverse=True):  # :env: comes last, and counts
        name, _, value = line.partition("=")
        if variable := UV_OPTIONS.get(name.rpartition(".")[2]):
            separator = "," if variable == "UV_FIND_LINKS" else " "
            found[variable] = separator.join(ast.literal_eval(value).split())
    return {name: value for name, value in found.items() if name not in os.environ}


class Environment:
    """A virtual environment in a folder of its own, and a working folder beside it.

    It finds the kernels that the checkout compiled: they are kept by content, so those of the same
    content and the same Python are loaded."""

    def __init__(self, folder, python=sys.executable):
        self.home, self.work = folder / "environment", folder / "work"
        self.work.mkdir(parents=True)
        self.variables = {
            name: value for name, value in os.environ.items() if name not in FROM_OUTSIDE
        }
        self.variables |= {
            "PATH": f"{self.home / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
        } | index_variables()
        self.uv("venv", "--quiet", "--no-project", "--python", python, str(self.home))

    def install(self, requirement):
        """With the tested versions."""
        tested = ("--constraint", str(ROOT / "constraints.txt"))
        self.uv("pip", "install", "--quiet", "--python", str(self.home), *tested, requirement)

    def uv(self, *words):
        """Have uv do something; a failure shows what it said."""
        how = {"cwd": self.work, "env": self.variables}
        done = subprocess.run([find_uv_bin(), *words], capture_output=True, text=True, **how)
        said = f"uv {' '.join(words)} fails; this test needs a package index\n{done.stdout}"
        assert done.returncode == 0, said + done.stderr

    def start(self, *words, input=None):
        """A command of the environment, in the working folder."""
        command = [str(self.home / "bin" / words[0]), *words[1:]]
        how = {"cwd": self.work, "env": self.variables, "input": input}
        return subprocess.run(command, capture_output=True, text=True, timeout=400, **how)

    def run(self, *words):
        """What it prints."""
        done = self.start(*words)
        assert done.returncode == 0, (
            f"{' '.join(words)[:200]}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
        )
        return done.stdout

    def advised(self, program):
        """The requirement that the MissingDependencyError of a program says to install."""
        done = self.start("python", "-c", program)
        assert done.returncode != 0 and "MissingDependencyError" in done.stderr, done.stderr
        found = re.search(r"pip install '([^']+)'", done.stderr)
        assert found, done.stderr
        return found[1]
