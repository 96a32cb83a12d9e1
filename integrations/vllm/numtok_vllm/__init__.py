"""numtok in vLLM: a tokenizer mode, a grammar of numbers, and number models, served by ``vllm serve``.

vLLM calls :func:`register` in each of its processes (entry point ``vllm.general_plugins``).
"""

from __future__ import annotations


def register() -> None:
    """Make ``--tokenizer-mode numtok`` known, and folders of ``NumberModel.save_pretrained``."""
    from transformers import AutoConfig
    from vllm import ModelRegistry
    from vllm.renderers.registry import RENDERER_REGISTRY
    from vllm.tokenizers import TokenizerRegistry

    from numtok_torch.auto import NumberConfig

    TokenizerRegistry.register("numtok", "numtok_vllm.tokenizer", "NumtokTokenizer")
    RENDERER_REGISTRY.register("numtok", "numtok_vllm.renderer", "NumtokRenderer")
    AutoConfig.register(NumberConfig.model_type, NumberConfig, exist_ok=True)
    ModelRegistry.register_model("PreTrainedNumberModel", "numtok_vllm.model:ServedNumberModel")
