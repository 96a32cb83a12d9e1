"""Models as ONNX graphs, each made once for all tests of a process."""

import functools
import tempfile
from pathlib import Path

from torch_generators import setting

from numtok_torch import to_onnx


@functools.cache
def _root():
    return tempfile.TemporaryDirectory()


@functools.cache
def exported(name, kind):
    """The folder of a model of :mod:`torch_generators`."""
    model, tokenizer, _ = setting(name, kind)
    return to_onnx(model, Path(_root().name) / f"{name} {kind}".replace(" ", "_"), tokenizer).parent
