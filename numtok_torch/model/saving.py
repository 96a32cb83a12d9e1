"""A number model on disk: ``model.safetensors`` with the weights of backbone, embedding and head,
``config.json``, which says what they are, and a line of Python with which transformers' Auto
classes find :mod:`numtok_torch.auto`. No pickle is written or read, and no Python read by numtok.

A parameter with several names (an output layer tied to the word embedding) is stored once, in state
dicts too, so that a Trainer, which saves state dicts, can write them to safetensors. It writes no
``config.json``: the same JSON is also an entry of the state dict, uint8, and read from there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from numtok.files import write_file
from numtok_torch.choose import embedding_from_config, head_from_config
from numtok_torch.embeddings.base import NumberEmbedding, NumberLayer
from numtok_torch.heads.base import NumberHead
from numtok_torch.model import adapters, delta
from numtok_torch.model.backbone import ModelError, is_pretrained, unwrapped

Model = TypeVar("Model", bound=nn.Module)
FORMAT_VERSION = 1
WEIGHTS, SETTINGS, EXTRA = "model.safetensors", "config.json", "_extra_state"
CODE = "modeling_numtok"
SHIM = """try:
    from numtok_torch.auto import *
except ImportError as error:
    raise ImportError(
        "this model reads and writes numbers with numtok; install it: pip install 'numtok[torch]'"
    ) from error
"""
KINDS = (
    *("", "ForCausalLM", "ForMaskedLM", "ForSeq2SeqLM"),
    *("ForSequenceClassification", "ForTokenClassification"),
)
# what transformers reads of config.json
FOR_TRANSFORMERS = {
    "model_type": "numtok",
    "architectures": ["PreTrainedNumberModel"],
    "auto_map": {
        "AutoConfig": f"{CODE}.NumberConfig",
        **{f"AutoModel{kind}": f"{CODE}.PreTrainedNumberModel" for kind in KINDS},
    },
    "custom_pipelines": {
        "text-generation": {"impl": f"{CODE}.NumberTextGeneration", "pt": ["AutoModelForCausalLM"]}
    },
    # GPT2LMHeadModel.from_pretrained would make random weights of those that it does not know
    "transformers_weights": "numtok reads them: pip install 'numtok[torch]', then"
    " transformers.AutoModel.from_pretrained(folder, trust_remote_code=True)",
}
MADE_HERE: dict[str, Callable[[], Any]] = {}  # classes that transformers has not, by their names
FLAGS = ("number_weight", "token_weight", "number_loss_per", "causal", "freeze_backbone")
# Of a backbone's config: what would make transformers fetch or run code from elsewhere, and what is
# not the model's.
NOT_READ = (
    *("auto_map", "custom_pipelines", "quantization_config"),
    *("keys_to_ignore_at_inference", "_name_or_path"),
)
NOT_READ_ENDING = ("attn_implementation", "experts_implementation", "_implementation_internal")


def describe(model: Any) -> dict[str, Any]:
    """Describe a model, JSON-ready: all that :func:`load` needs besides the weights."""
    backbone, transformer = None, model.transformer
    if is_pretrained(transformer):
        config = json.loads(transformer.config.to_json_string(use_diff=False))
        generates = transformer.can_generate()
        backbone = {
            "class": type(transformer).__name__,
            "config": harmless(config),
            "generation_config": transformer.generation_config.to_dict() if generates else None,
        }
    parameters = () if model.freeze_backbone else model.backbone.named_parameters()
    return {
        "format": FORMAT_VERSION,
        "backbone": backbone,
        "adapters": adapters.describe(model.backbone),
        "embedding": _layer(model.embedding),
        "head": _layer(model.head),
        **{name: getattr(model, name) for name in FLAGS},
        "tokenizer_identity": model.tokenizer_identity,
        "frozen": [name for name, parameter in parameters if not parameter.requires_grad],
    }


def _layer(layer: NumberLayer | None) -> dict[str, Any] | None:
    return None if layer is None else {"d_model": layer.d_model, **layer.config()}


def harmless(config: Any) -> Any:
    """Return a backbone's config without :data:`NOT_READ`, at any depth."""
    if isinstance(config, list):
        return [harmless(entry) for entry in config]
    if not isinstance(config, dict):
        return config
    return {
        key: harmless(value)
        for key, value in config.items()
        if key not in NOT_READ and not key.endswith(NOT_READ_ENDING)
    }


def pack(described: dict[str, Any]) -> Tensor:
    """Write JSON as uint8 (bytes,)."""
    written = json.dumps(described, sort_keys=True).encode()
    return torch.frombuffer(bytearray(written), dtype=torch.uint8)


def unpack(state: Tensor) -> dict[str, Any]:
    """Read what :func:`pack` wrote."""
    return dict(json.loads(bytes(state.to(torch.uint8).tolist())))


def shared_names(module: nn.Module) -> dict[str, str]:
    """Return the further names of parameters that have several, each to the first."""
    first: dict[int, str] = {}
    further: dict[str, str] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if (first_name := first.setdefault(id(parameter), name)) != name:
            further[name] = first_name
    return further


def drop_shared(model: nn.Module, state: dict[str, Any], prefix: str, _: Any) -> None:
    """Keep each parameter of a state dict under its first name only; a hook."""
    for name in shared_names(model):
        state.pop(prefix + name, None)


def restore_shared(model: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Add to a state dict, as a hook before loading, the names that :func:`drop_shared` left out,
    the extra entry, and the weights that lie in the base model.
    """
    extra = state.get(prefix + EXTRA)
    if extra is not None and extra.numel() and (base := unpack(extra).get("base")) is not None:
        delta.complete(model, state, prefix, base)
    for name, first in shared_names(model).items():
        if prefix + first in state:
            state.setdefault(prefix + name, state[prefix + first])
    state.setdefault(prefix + EXTRA, torch.empty(0, dtype=torch.uint8))


def save(
    model: Any,
    folder: Path,
    state: Mapping[str, Tensor] | None = None,
    base: str | Path | bool | None = None,
) -> None:
    """Write the files, with the state dict given or the model's, or without what lies in a base
    model; a reader never sees half of one.
    """
    import safetensors.torch

    if "peft_config" in model.__dict__:
        raise ModelError(
            "peft has put adapters around this model: save them with the PeftModel's"
            " save_pretrained, and load them with PeftModel.from_pretrained onto this model as it"
            " was; or call the PeftModel's merge_and_unload(), and save what it returns"
        )
    folder.mkdir(parents=True, exist_ok=True)
    if base:
        state, settings = without_base(model, base)
    else:
        settings = describe(model)
        state = model.state_dict() if state is None else state
        state = {name: one for name, one in state.items() if name != EXTRA}
    _check_plain(state)
    state = {name: one.detach().contiguous() for name, one in state.items()}
    temporary = folder / f".{WEIGHTS}.tmp"
    safetensors.torch.save_file(state, temporary, metadata={"format": "pt"})
    temporary.replace(folder / WEIGHTS)
    write_settings(settings, folder)


def _check_plain(state: Mapping[str, Any]) -> None:
    """Refuse quantised or sharded weights, of which no model could be made again."""
    small = (torch.int8, torch.uint8)
    for name, one in state.items():
        if name != EXTRA and (type(one) not in (Tensor, nn.Parameter) or one.dtype in small):
            raise ModelError(
                f"{name} is quantised or sharded, and cannot be saved so; quantise the model after"
                " it is loaded, or save what was trained beside it alone:"
                " save_pretrained(folder, base=...)"
            )


def without_base(model: Any, base: str | Path | bool) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return what a base model has not: the weights, and the settings, which name the base."""
    settings = describe(model) | {"base": delta.base_of(model, base)}
    return delta.weights_beside(model, settings["base"]) | {EXTRA: pack(settings)}, settings


def write_settings(settings: Mapping[str, Any], folder: Path) -> None:
    """Write what lies beside the weights, with the settings of :func:`describe`."""
    described = FOR_TRANSFORMERS | dict(settings)
    write_file(folder / SETTINGS, json.dumps(described, indent=2) + "\n")
    write_file(folder / f"{CODE}.py", SHIM)


def load(
    kind: Callable[..., Model],
    folder: Path,
    backbone: nn.Module | None,
    embedding: NumberEmbedding | None,
    head: NumberHead | None,
    dtype: torch.dtype | None,
) -> Model:
    """Load what :func:`save` wrote; see ``NumberModel.from_pretrained``."""
    weights, settings = read(folder)
    try:
        flags = {name: settings[name] for name in FLAGS}
        frozen = frozenset(settings["frozen"])
        backbone = _backbone(backbone, settings, part(weights, "backbone."), dtype)
        embedding = embedding or _made(embedding_from_config, settings["embedding"])
        head = head or _made(head_from_config, settings["head"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{folder / SETTINGS} is damaged ({type(error).__name__}: {error}); save the model"
            " again"
        ) from error
    _cast(embedding, part(weights, "embedding."))
    _cast(head, part(weights, "head."))
    identity = settings.get("tokenizer_identity")
    model = kind(backbone, embedding, head, **flags, tokenizer=identity)
    for name, parameter in backbone.named_parameters():
        parameter.requires_grad_(parameter.requires_grad and name not in frozen)
    if settings.get("base") is not None:
        if missing := delta.own_names(model) - weights.keys():
            raise ModelError(f"{folder / WEIGHTS} has no {min(missing)}; save the model again")
        weights[EXTRA] = pack(settings)
    try:
        # what a quantised base adds to its state dict, not every layer of it takes back
        result = model.load_state_dict(weights, strict=settings.get("base") is None)
        if unknown := [name for name in result.unexpected_keys if name in weights]:
            raise RuntimeError(f"it has no {', '.join(unknown)}")
    except RuntimeError as error:
        raise ModelError(
            f"{folder / WEIGHTS} does not hold the weights of this model: {error}"
        ) from error
    return model.eval()


def read(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return (weights by name, settings) of a folder. ModelError if there is none, or it is
    damaged.
    """
    import safetensors
    import safetensors.torch

    path = folder / WEIGHTS
    if not path.is_file():
        raise ModelError(
            f"{folder} has no {WEIGHTS}; it must be a folder that NumberModel.save_pretrained or a"
            " Trainer wrote"
        )
    try:
        # as views of the file they would not be aligned, and sums in another order
        weights = {name: one.clone() for name, one in safetensors.torch.load_file(path).items()}
    except (safetensors.SafetensorError, ValueError) as error:
        raise ModelError(f"{path} is damaged ({error}); save the model again") from error
    written = weights.pop(EXTRA, None)
    try:
        if written is not None:  # a Trainer's checkpoint, perhaps over a folder that had settings
            settings = unpack(written)
        else:
            settings = json.loads((folder / SETTINGS).read_text("utf-8"))
        version = settings["format"]
    except FileNotFoundError:
        raise ModelError(
            f"{folder} has no {SETTINGS}, and {WEIGHTS} was not written by numtok"
        ) from None
    except KeyError:
        raise ModelError(
            f"{folder / SETTINGS} is of another model, not written by numtok"
        ) from None
    except (ValueError, TypeError) as error:
        raise ModelError(
            f"{folder / SETTINGS} is damaged ({error}); save the model again"
        ) from error
    if version != FORMAT_VERSION:
        raise ModelError(
            f"{folder} has format {version}, this version of numtok reads format {FORMAT_VERSION};"
            " upgrade numtok"
        )
    return weights, settings


def part(weights: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the weights whose names begin with the prefix, without it."""
    inside = [name for name in weights if name.startswith(prefix)]
    return {name.removeprefix(prefix): weights[name] for name in inside}


def _backbone(
    backbone: Any,
    settings: Mapping[str, Any],
    weights: dict[str, Tensor],
    dtype: torch.dtype | None,
) -> Any:
    """Return the backbone that is given or described, with the adapters described."""
    described, base = settings.get("adapters"), settings.get("base")
    if base is not None:
        kind, config = class_and_config(settings["backbone"])
        backbone = delta.load_base(base, kind, dtype) if backbone is None else backbone
        rows = int(config.get_text_config().vocab_size)
        delta.add_new_rows(unwrapped(backbone), rows, base)
    plain = weights if described is None else adapters.base_weights(weights, described)
    if backbone is None:
        backbone = _made_backbone(settings["backbone"], plain, dtype)
    elif dtype is not None:
        backbone = backbone.to(dtype)
    if described is None or adapters.describe(backbone) is not None:
        return backbone
    # before there are adapters, as those of single tokens begin with their vectors
    backbone.load_state_dict(plain, strict=False)
    adapted = adapters.restore(backbone, described)
    if dtype is None:
        _cast(adapted, weights)
    return adapted


def _made_backbone(
    described: dict[str, Any] | None, weights: dict[str, Tensor], dtype: torch.dtype | None
) -> Any:
    """Make a Hugging Face model of the class and config described."""
    if described is None:
        raise ModelError(
            "the model was saved around a plain module; make one and give it:"
            " from_pretrained(folder, backbone=...)"
        )
    import transformers

    kind, config = class_and_config(described)
    saved = next((one.dtype for one in weights.values() if one.is_floating_point()), torch.float32)
    backbone: Any = kind.from_pretrained(
        None, config=config, state_dict=weights, dtype=dtype or saved
    )
    if (generation := described["generation_config"]) is not None:
        backbone.generation_config = transformers.GenerationConfig.from_dict(generation)
    return backbone


def class_and_config(described: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return class and config of a backbone by what :func:`describe` says of it."""
    import transformers

    name = described["class"]
    kind: Any = MADE_HERE[name]() if name in MADE_HERE else getattr(transformers, name, None)
    if not isinstance(kind, type) or not issubclass(kind, transformers.PreTrainedModel):
        raise ModelError(
            f"transformers {transformers.__version__} has no model {name!r}; make one and give it:"
            " from_pretrained(folder, backbone=...)"
        )
    written = json.dumps(harmless(described["config"]))
    described_by: Any = kind.config_class
    return kind, described_by.from_dict(json.loads(written, object_hook=_float))


def _float(mapping: dict[str, Any]) -> Any:
    """Return the number that transformers writes as ``{"__float__": "Infinity"}``, as JSON has
    none.
    """
    names = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
    return names.get(str(mapping.get("__float__")), mapping)


def _made(make: Callable[[dict[str, Any], int], Any], described: dict[str, Any] | None) -> Any:
    if described is None:
        return None
    options = dict(described)
    return make(options, options.pop("d_model"))


def _cast(module: nn.Module | None, weights: Mapping[str, Tensor]) -> None:
    """Give each parameter the dtype of the weights that it will be loaded with."""
    for name, parameter in module.named_parameters() if module is not None else ():
        if name in weights:
            parameter.data = parameter.data.to(weights[name].dtype)
