"""Adapters of the library peft (LoRA and its kin) in a number model, wrapped (``get_peft_model``)
or in place (``add_adapter``): described as JSON, made anew on load, merged into the weights.

Their weights are in the model's state dict like all others. peft is imported only where they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from numtok.errors import MissingDependencyError
from numtok_torch.model.backbone import (
    ADAPTERS,
    ModelError,
    output_layer,
    unsupported_adapters,
    unwrapped,
    word_embedding,
)

# Of an adapter's config: what names code or files elsewhere; none of it changes what a trained
# adapter computes.
NOT_READ = (
    *("auto_mapping", "base_model_name_or_path", "revision", "megatron_config", "megatron_core"),
    *("loftq_config", "eva_config", "corda_config", "lora_ga_config"),  # how LoRA is initialised
)
# the modules that peft puts around those of the backbone
AROUND = ("base_layer", "original_module", "token_adapter")
# the names of layers in an adapter's config, and of those that are tied to one of them
TIED = {"modules_to_save": "modules_to_tie", "target_modules": "target_modules_to_tie"}


def describe(backbone: Any) -> dict[str, Any] | None:
    """Describe the adapters of a backbone, JSON-ready; None if there are none. ModelError if they
    are merged, but still there: their weights would count twice when loaded.
    """
    plain = unwrapped(backbone)
    configs = getattr(plain, "peft_config", None)
    if not configs:
        return None
    if other := unsupported_adapters(plain):
        raise ModelError(
            f"adapters of the kind {other[0]} cannot be saved; there are {', '.join(ADAPTERS)}."
            " merge_and_unload() them first"
        )
    layers = list(_layers(plain))
    # a layer of single tokens names only the adapters that it has
    active = dict.fromkeys(name for layer in layers for name in layer.active_adapters)
    if any(layer.merged for layer in layers):
        raise ModelError(
            "the adapters are merged into the weights, and still beside them; unmerge them, or call"
            " merge_and_unload()"
        )
    return {
        "wrapped": plain is not backbone,
        "loaded": getattr(plain, "_hf_peft_config_loaded", False),
        "active": list(active),
        "enabled": not any(layer.disable_adapters for layer in layers),
        "configs": {name: _settings(config) for name, config in configs.items()},
    }


def _settings(config: Any) -> dict[str, Any]:
    """Return an adapter's config, JSON-ready. peft takes layers that it ties to the word embedding
    out of the lists of names, without which it does not tie those of a GPT-2 again.
    """
    settings: dict[str, Any] = json.loads(json.dumps(config.to_dict(), default=sorted))  # sets
    for name, tied in TIED.items():
        if isinstance(names := settings.get(name), list):
            settings[name] = [*names, *sorted(getattr(config, tied, None) or ())]
    return settings


def restore(backbone: Any, described: Mapping[str, Any]) -> Any:
    """Put the adapters described into a backbone, their weights still to be loaded; return the
    wrapper if there was one. ModelError if the description is damaged, or of a kind of adapter that
    is not supported. It takes peft.
    """
    try:
        import peft
        from peft.functional import inject_adapter_in_model, set_adapter
    except ImportError as error:
        raise MissingDependencyError(
            "the model has adapters of peft; install it: pip install peft"
        ) from error
    try:
        adapted = backbone
        mixed = len({settings["peft_type"] for settings in described["configs"].values()}) > 1
        for name, settings in described["configs"].items():
            config = _config(settings)
            if not described["wrapped"]:
                inject_adapter_in_model(config, backbone, name)
            elif adapted is backbone:
                adapted = peft.get_peft_model(backbone, config, name, mixed=mixed)
            else:
                adapted.add_adapter(name, config)
        if described["loaded"]:
            backbone._hf_peft_config_loaded = True
        active = list(described["active"])
        if adapted is backbone:
            set_adapter(backbone, active)
        else:
            adapted.base_model.set_adapter(active)
        if isinstance(adapted, peft.PeftModel):
            adapted.active_adapter = active[0]
        if not described["enabled"]:
            for module in _layers(backbone):
                module.enable_adapters(False)
    except ModelError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ModelError(
            f"the adapters cannot be made anew ({type(error).__name__}: {error}); save the model"
            " again"
        ) from error
    return adapted


def merged(backbone: Any) -> Any:
    """Merge the adapters of a backbone into its weights, and take them out of it: return the
    backbone inside of peft's wrapper, changed in place. ModelError if it has none, or if they
    repeat layers.
    """
    transformer = unwrapped(backbone)
    if not getattr(transformer, "peft_config", None):
        raise ModelError(f"{type(transformer).__name__} has no adapters to merge")
    if any(getattr(one, "layer_replication", None) for one in transformer.peft_config.values()):
        raise ModelError(
            "the adapters repeat layers, which share their weights (layer_replication), so they"
            " cannot be merged; save the model with its adapters"
        )
    tied = _untie(transformer)
    done = ""
    for name, module in list(transformer.named_modules()):
        if not _is_adapted(module) or (done and name.startswith(done)):
            continue  # a part of one that is taken out as a whole
        if hasattr(module, "unload_and_optionally_merge_module"):
            plain = module.unload_and_optionally_merge_module(True, False, None)
        else:
            module.merge()
            plain = module.get_base_layer()
        transformer.set_submodule(name, plain)
        done = f"{name}."
    del transformer.peft_config
    transformer.__dict__.pop("_hf_peft_config_loaded", None)
    if hasattr(transformer, "name_or_path"):  # its weights are no longer those that lie there
        transformer.name_or_path = ""
    if tied and output_layer(transformer).weight is word_embedding(transformer).weight:
        transformer.config.tie_word_embeddings = True  # peft had trained one copy for both
    return transformer


def _untie(transformer: Any) -> bool:
    """Give the output layer weights of its own, where it shares those of the word embedding and
    only one of the two is adapted, or each in its way. Return whether the config had them tied.
    """
    words, out = word_embedding(transformer), output_layer(transformer)
    # rows of single tokens, which are the same in both
    single = [hasattr(layer, "token_adapter") for layer in (words, out)]
    if out is None or all(single) or not (_is_adapted(words) or _is_adapted(out)):
        return False
    inside = out.get_base_layer() if hasattr(out, "get_base_layer") else None
    plain: Any = inside or getattr(out, "original_module", out)
    trained = plain.weight.requires_grad
    plain.weight = nn.Parameter(plain.weight.detach().clone(), requires_grad=trained)
    tied = bool(getattr(getattr(transformer, "config", None), "tie_word_embeddings", False))
    if tied:
        transformer.config.tie_word_embeddings = False
    return tied


def _is_adapted(module: nn.Module) -> bool:
    """Whether peft put the module in the place of one of the backbone's."""
    return hasattr(module, "unload_and_optionally_merge_module") or (
        hasattr(module, "base_layer") and hasattr(module, "merge")
    )


def base_weights(weights: Mapping[str, Tensor], described: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the weights without those of the adapters, by the names that they have in a backbone
    without any: ``h.0.c_attn.weight`` is ``h.0.c_attn.base_layer.weight`` beside adapters.
    """
    names = set(described["configs"])
    renamed = {}
    for name, value in weights.items():
        parts = name.split(".")
        if parts[:2] == ["base_model", "model"] and described["wrapped"]:
            parts = parts[2:]
        if not names & set(parts):
            renamed[".".join(part for part in parts if part not in AROUND)] = value
    return renamed


def _layers(module: nn.Module) -> Iterator[Any]:
    """Yield every layer with adapters."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    return (layer for layer in module.modules() if isinstance(layer, BaseTunerLayer))


def _config(settings: Mapping[str, Any]) -> Any:
    """Make peft's config; what would run or fetch anything is left out, and weights are not
    computed, as they will be loaded.
    """
    import peft

    if settings["peft_type"] not in ADAPTERS:
        raise ModelError(
            f"adapters of the kind {settings['peft_type']!r} are not supported; there are"
            f" {', '.join(ADAPTERS)}"
        )
    options = {key: value for key, value in settings.items() if key not in NOT_READ}
    if isinstance(options.get("init_lora_weights"), str):
        options["init_lora_weights"] = True
    options["inference_mode"] = False  # what is frozen, the model says
    return peft.get_peft_config(options)
