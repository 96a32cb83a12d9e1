"""The part of a model that its base, which the backbone was loaded from, has not: embedding, head,
adapters, weights that were trained, and the rows of new tokens. A few megabytes in place of all.

In: a :class:`~numtok_torch.NumberModel`. Out: its weights by name without those of the base, and
``rows.words`` (new rows, d) and ``rows.output`` with the rows beyond the base's vocabulary, and from
the first on that ``add_number_rows`` started within it. Inverse:
:func:`complete`, on a model around the base.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from numtok_torch.model import adapters
from numtok_torch.model.backbone import (
    ModelError,
    add_rows,
    is_loaded,
    is_pretrained,
    output_layer,
    rows_of,
    word_embedding,
)

ROWS = ("rows.words", "rows.output")
# init_lora_weights that leave the weights of the base as they are; PiSSA and others change them
PLAIN_STARTS = (None, True, False, "gaussian", "orthogonal", "eva", "mica")


def base_of(model: Any, base: str | Path | bool) -> dict[str, Any]:
    """Return the name of the base, how many rows it has, and the first that is saved, JSON-ready.

    Args:
        model: the :class:`~numtok_torch.NumberModel`.
        base: a folder or an id of the Hub; True for what the backbone was loaded from.

    Raises:
        ModelError: if that is not known, or has no config of such a model.
    """
    backbone = model.transformer
    if base is True:
        base = getattr(backbone, "name_or_path", "") if is_pretrained(backbone) else ""
    if not base:
        raise ModelError(
            f"it is not known what {type(backbone).__name__} was loaded from; name its folder or hub"
            " id: base=..."
        )
    name = str(Path(base).resolve()) if Path(base).is_dir() else str(base)
    try:
        if Path(name).is_dir() and not (Path(name) / "config.json").is_file():
            raise OSError("no config.json")
        config = type(backbone).config_class.from_pretrained(name)
        rows = min(int(config.get_text_config().vocab_size), rows_of(backbone))
    except (OSError, ValueError, AttributeError) as error:
        raise ModelError(
            f"{name} holds no model that can be loaded again ({str(error)[:100]}); give base=... a"
            " folder or hub id with a config.json, or save all of the model, without base"
        ) from error
    start = min(rows, getattr(backbone, "first_number_row", rows))
    return {"name": name, "rows": rows, "start": start}


def has_base(model: Any) -> bool:
    """Whether the backbone has adapters, and was loaded from what can be loaded again."""
    if adapters.describe(model.backbone) is None or not is_loaded(model.transformer):
        return False
    try:
        base_of(model, True)
    except ModelError:
        return False
    return True


def own_names(model: Any) -> set[str]:
    """Return the names of the weights that the base has not, or that were trained."""
    described = adapters.describe(model.backbone)
    configs = described["configs"] if described else {}
    of_adapters = set(configs)
    if any(one.get("init_lora_weights") not in PLAIN_STARTS for one in configs.values()):
        of_adapters.add("base_layer")
    trained = {name for name, one in model.named_parameters() if one.requires_grad}
    return {
        name
        for name, value in model.state_dict().items()
        if isinstance(value, Tensor)
        and (
            name.startswith(("embedding.", "head."))
            or name in trained
            or (name.startswith("backbone.") and of_adapters & set(name.split(".")))
        )
    }


def weights_beside(model: Any, base: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the weights by name, without those of the base."""
    state, names_own, start = model.state_dict(), own_names(model), base["start"]
    weights = {name: state[name] for name in names_own}
    for rows, name in _row_weights(model).items():
        if name not in names_own and len(state[name]) > start:
            weights[rows] = state[name][start:]
    return weights


def complete(model: Any, state: dict[str, Any], prefix: str, base: Mapping[str, Any]) -> None:
    """Add to the weights that :func:`weights_beside` gave, in place, those of the model itself,
    whose backbone is the base.
    """
    current, names = model.state_dict(), _row_weights(model)
    for rows in ROWS:
        new, name = state.pop(prefix + rows, None), names.get(rows)
        # an output layer without a name is tied: transformers' load_adapter had untied it
        if new is not None and name is not None:
            whole = current[name].detach().clone()
            whole[_start(base) :] = new
            state[prefix + name] = whole
    for name, value in current.items():
        state.setdefault(prefix + name, value)


def load_base(described: Mapping[str, Any], kind: Any, dtype: torch.dtype | None) -> Any:
    """Return the base model, of a class of transformers."""
    name = described["name"]
    try:
        return kind.from_pretrained(name, dtype=dtype or "auto")
    except (OSError, ValueError) as error:
        raise ModelError(
            f"the base model {name} cannot be loaded ({str(error)[:100]}); load it yourself, and"
            " give it: from_pretrained(folder, backbone=...)"
        ) from error


def add_new_rows(backbone: Any, rows: int, base: Mapping[str, Any]) -> None:
    """Give the base model the rows of new tokens, whose values are still to be loaded."""
    if rows_of(backbone) not in (base["rows"], rows):
        raise ModelError(
            f"the base model {base['name']} has {base['rows']} rows, the one given"
            f" {rows_of(backbone)}; give the same one"
        )
    add_rows(backbone, rows, started=False)
    backbone.first_number_row = _start(base)


def _start(base: Mapping[str, Any]) -> int:
    """Return the first row that is saved; earlier versions saved those beyond the base's."""
    return int(base.get("start", base["rows"]))


def _row_weights(model: Any) -> dict[str, str]:
    """Return the names of the weights of words and, where it has its own, of the output layer, by
    the names of their new rows.
    """
    names = {id(one): name for name, one in model.named_parameters()}
    words, output = word_embedding(model.transformer), output_layer(model.transformer)
    name_of_rows: dict[str, str] = {}
    for rows, layer in zip(ROWS, (words, output), strict=True):
        modules = () if layer is None else layer.modules()
        plain = next((one for one in modules if isinstance(one, nn.Embedding | nn.Linear)), None)
        name = None if plain is None else names.get(id(plain.weight))
        if name is not None and name not in name_of_rows.values():
            name_of_rows[rows] = name
    return name_of_rows
