"""``make release-check``: the sdist and the wheel, built, looked through, and tried in a fresh
environment of every Python that is on this machine. They are left in dist/.
"""

from __future__ import annotations

import email
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))
from environments import Environment, index_variables, interpreter  # noqa: E402

DIST = ROOT / "dist"
BIN = Path(sys.executable).parent


def run(*command: object, **more: str) -> str:
    """What a tool of this environment prints; a failure ends the check."""
    words = [str(BIN / str(command[0])), *map(str, command[1:])]
    print("$", *command, flush=True)
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ | more, text=True, stdout=subprocess.PIPE, check=False
    )
    if done.returncode:
        sys.exit(f"{done.stdout}{command[0]} fails: exit status {done.returncode}")
    return done.stdout


def build() -> tuple[Path, Path, str]:
    """The sdist, the wheel that is made from it, and their version."""
    shutil.rmtree(DIST, ignore_errors=True)
    run("python", "-m", "build", "--installer", "uv", "--outdir", DIST, ROOT, **index_variables())
    (sdist,), (wheel,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        (name,) = (name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        return sdist, wheel, email.message_from_bytes(file.read(name))["Version"]


def check_version(version: str, tag: str) -> None:
    """Of a release, which has a tag: the tag and the changelog name the version."""
    if tag and tag != f"v{version}":
        sys.exit(f"the tag is {tag} and the version {version}; set it in pyproject.toml")
    if tag and f"\n## [{version}] - " not in (ROOT / "CHANGELOG.md").read_text("utf-8"):
        sys.exit(f"CHANGELOG.md has no section '## [{version}] - DATE'")


def try_out(archive: Path, python: str, version: str) -> None:
    """Install it away from the checkout, run the demo, encode and decode a file, score an answer."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(Path(folder), python)
        environment.install(str(archive))
        for name in ("demo.py", "sample.jsonl"):
            shutil.copy(ROOT / "examples" / name, environment.work)
        said = environment.run("numtok", "--version").strip()
        assert said == f"numtok {version}", said
        environment.run("python", "demo.py")
        environment.run(
            "numtok",
            "encode",
            "sample.jsonl",
            "-o",
            "a.parquet",
            "--numbers",
            "bits",
            "--keep-text",
        )
        environment.run("numtok", "decode", "a.parquet", "-o", "back.jsonl")
        scored = "from numtok.score import equal; print(equal('so 1,072.', '1072'))"
        assert environment.run("python", "-c", scored).strip() == "True"


def main() -> None:
    """Build, look through, try out."""
    sdist, wheel, version = build()
    check_version(version, os.environ.get("TAG", ""))
    run("twine", "check", "--strict", sdist, wheel)
    run("check-wheel-contents", wheel)
    run("pyroma", "--min", "10", sdist)
    run("cffconvert", "--validate", "-i", ROOT / "CITATION.cff")
    tried = 0
    for minor in range(11, 20):
        python = interpreter(f"3.{minor}")
        for archive in (wheel, sdist) if python else ():
            print(f"Python 3.{minor}: {archive.name}", flush=True)
            try_out(archive, str(python), version)
            tried += 1
    if not tried:
        sys.exit("no Python is on the path as python3.11 or the like")
    print(f"{sdist.name} and {wheel.name} can be released.")


if __name__ == "__main__":
    main()
