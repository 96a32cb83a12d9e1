"""The packages, found rather than listed; everything else is in pyproject.toml.

The command line lies in cli/ and is installed as numtok_cli, so that no global module is called
``cli``: a renaming that ``packages.find`` in pyproject.toml cannot express.
"""

from setuptools import find_packages, setup

COMMAND_LINE = "numtok_cli"  # from cli/: [tool.setuptools.package-dir]

setup(
    packages=[
        *find_packages(include=["numtok", "numtok.*", "numtok_torch", "numtok_torch.*"]),
        COMMAND_LINE,
        *(f"{COMMAND_LINE}.{name}" for name in find_packages("cli")),
    ]
)
