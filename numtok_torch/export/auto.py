"""A :class:`~numtok_torch.NumberModel` as transformers knows models: what its Auto classes load
from a folder that ``save_pretrained`` wrote, with ``generate`` on ids, pipelines and
``push_to_hub``.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from numtok import Tokenizer
from numtok.engines.config import TOKENIZER_FILE
from numtok.errors import MissingDependencyError, SchemaError
from numtok.representations.columns import NUMBER_MASK, NUMBER_VALUE
from numtok.tokenizer.tokenizer_json import SETTINGS_FILE
from numtok_torch.generation.generate_texts import Call, option_of
from numtok_torch.generation.state import Writing
from numtok_torch.model import saving
from numtok_torch.model.backbone import ModelError, is_pretrained
from numtok_torch.model.delta import base_of
from numtok_torch.model.model import NumberModel
from numtok_torch.model.objective import pop_streams

try:
    from transformers import GenerationMixin, PreTrainedModel, TextGenerationPipeline
    from transformers.configuration_utils import PreTrainedConfig
    from transformers.utils.hub import cached_file
except ImportError as error:
    raise MissingDependencyError(
        "numtok_torch.auto needs transformers: pip install 'numtok[hf]'"
    ) from error

__all__ = [
    "NumberConfig",
    "NumberModelForCausalLM",
    "NumberModelForMaskedLM",
    "NumberModelForSeq2SeqLM",
    "NumberModelForSequenceClassification",
    "NumberModelForTokenClassification",
    "NumberTextGeneration",
    "PreTrainedNumberModel",
]
WHERE = ("cache_dir", "force_download", "local_files_only", "revision", "subfolder", "token")
# what transformers passes on, and says nothing of the model
NOT_READ = ("trust_remote_code", "adapter_kwargs", "_from_auto", "_from_pipeline")
NEW_TOKENS = 20  # as of transformers' generate, where nothing says how many


class NumberConfig(PreTrainedConfig):  # type: ignore[misc,unused-ignore]
    """``config.json`` beside a number model: the backbone's class and config, adapters, embedding,
    head, and how they are trained (:func:`numtok_torch.model.saving.describe`).

    Example:
        >>> import transformers
        >>> config = transformers.GPT2Config(n_embd=8, n_layer=1, n_head=1)
        >>> backbone = transformers.GPT2LMHeadModel(config)
        >>> PreTrainedNumberModel(backbone, embedding=None).save_pretrained("model")
        >>> NumberConfig.from_pretrained("model").get_text_config().n_embd
        8
    """

    model_type = "numtok"

    def get_text_config(self, decoder: Any = None, encoder: Any = None) -> Any:
        """Return the backbone's own config, which says its sizes."""
        described = getattr(self, "backbone", None)
        return self if described is None else saving.class_and_config(described)[1]

    def to_diff_dict(self) -> dict[str, Any]:
        """Return the settings that are saved, also those that the reader of the file changed or
        left out.
        """
        return super().to_diff_dict() | saving.FOR_TRANSFORMERS

    @classmethod
    def register_for_auto_class(cls, auto_class: Any = "AutoConfig") -> None:
        """Do nothing: saved folders import the class from this package and hold no copy of its
        code.
        """


class PreTrainedNumberModel(NumberModel, PreTrainedModel, GenerationMixin):  # type: ignore[misc,override,unused-ignore]
    """A :class:`~numtok_torch.NumberModel`, made by the same arguments, that is a model of
    transformers too. Its ``config`` and ``generation_config`` are those of the backbone.

    Attributes:
        name_or_path: where it was loaded from.

    Example:
        >>> import transformers
        >>> config = transformers.GPT2Config(n_embd=8, n_layer=1, n_head=1)
        >>> model = PreTrainedNumberModel(transformers.GPT2LMHeadModel(config), embedding=None)
        >>> isinstance(model, transformers.PreTrainedModel), model.config.model_type
        (True, 'gpt2')
    """

    config_class = NumberConfig
    name_or_path = ""
    _where: Mapping[str, Any] = {}

    def can_generate(self) -> bool:  # type: ignore[override,unused-ignore]  # the backbone says
        """Whether the backbone can."""
        return is_pretrained(self.transformer) and bool(self.transformer.can_generate())

    @classmethod
    def from_pretrained(  # type: ignore[override,unused-ignore]
        cls, folder: Any, dtype: Any = None, config: Any = None, **options: Any
    ) -> Any:
        """Load a model from a folder or the Hub, as :meth:`NumberModel.from_pretrained` does from a
        folder.

        Args:
            folder: on disk, or a name on the Hub.
            dtype: of the backbone, or its name; None and ``"auto"`` for that of the weights.
            config: only its kind of attention is looked at.
            options: ``backbone``, ``embedding`` and ``head``, as there; for the Hub, ``revision``,
                ``token`` and the like; ``device_map``, of one device; ``torch_dtype``, another name
                of ``dtype``.

        Raises:
            ModelError: for several devices, and what ``NumberModel.from_pretrained`` raises.
        """
        where = {name: options.pop(name) for name in WHERE if name in options}
        layers = {
            name: one for name, one in options.items() if name not in NOT_READ and one is not None
        }
        dtype = layers.pop("torch_dtype", dtype)  # its older name
        device_map = layers.pop("device_map", None)
        if unknown := sorted(layers.keys() - {"backbone", "embedding", "head"}):
            raise ModelError(
                f"a number model is not loaded with {', '.join(unknown)}; leave it out"
            )
        device = _one_device(device_map)
        files = [
            str(cached_file(folder, name, **where)) for name in (saving.SETTINGS, saving.WEIGHTS)
        ]
        if isinstance(dtype, str):
            dtype = None if dtype == "auto" else getattr(torch, dtype)
        model: Any = super().from_pretrained(Path(files[1]).parent, dtype=dtype, **layers)
        model.name_or_path = str(folder)
        model._where = {name: one for name, one in where.items() if name != "token"}  # it is secret
        if chosen := getattr(config, "_attn_implementation", None):
            model.transformer.set_attn_implementation(chosen)
        return model if device is None else model.to(device)

    def save_pretrained(  # type: ignore[override]
        self,
        save_directory: Any,
        state_dict: Any = None,
        push_to_hub: bool = False,
        base: str | Path | bool | None = None,
        **options: Any,
    ) -> None:
        """Save the model as :meth:`NumberModel.save_pretrained` does, with the weights of
        ``state_dict`` if there is one; ``push_to_hub`` uploads too, under ``repo_id`` or the
        folder's name.
        """
        saving.save(self, Path(save_directory), state_dict, base)
        if push_to_hub:
            name = options.pop("repo_id", Path(save_directory).name)
            self.push_to_hub(name, base=base, **options)

    def push_to_hub(  # type: ignore[override,unused-ignore]
        self, repo_id: str, *, base: str | Path | bool | None = None, **options: Any
    ) -> str:
        """Do what transformers' method of this name does.

        Args:
            repo_id: where to.
            base: as in :meth:`save_pretrained`: upload only what the base has not. The base must be
                on the Hub too.
            options: those of transformers.

        Raises:
            ModelError: for a base that is a folder, which nobody else has.
        """
        if base and Path(name := base_of(self, base)["name"]).is_dir():
            raise ModelError(
                f"the base model {name} is a folder of this machine; name it as it is called on the"
                " Hub: base=..."
            )
        pushed = copy.copy(self)  # it calls save_pretrained without the base
        pushed.__dict__["save_pretrained"] = functools.partial(self.save_pretrained, base=base)
        push: Any = super(PreTrainedNumberModel, pushed).push_to_hub
        return str(push(repo_id, **options))

    @torch.no_grad()
    def generate(  # type: ignore[override,unused-ignore]
        self,
        inputs: Tensor | None = None,
        *,
        tokenizer: Any = None,
        return_dict_in_generate: bool | None = None,
        **options: Any,
    ) -> Any:
        """Continue ids as transformers' ``generate`` does, with numbers: those of the prompts are
        read from their streams, those of the new text from the head, and the model sees them from
        then on.

        Args:
            inputs: ids of the prompts, (batch, seq), padded on the left; ``input_ids`` is another
                name.
            tokenizer: that of the model; None if it lies beside the model that was loaded.
            return_dict_in_generate: return transformers' output with ``sequences``, and
                ``number_value``, float64 of the same shape: the value of each number at its place,
                NaN elsewhere, for ``tokenizer.decode(ids, number_value=...)``.
            options: those of transformers' ``generate``, but for those that
                :func:`numtok_torch.generate` refuses; and the number streams, as the tokenizer
                gives them with ``return_numbers=True``. Spelled-out numbers are well-formed.

        Raises:
            ModelError: if the model cannot generate, or not with this tokenizer or these options.
            SchemaError: without the streams that the embedding reads.
        """
        inputs = options.pop("input_ids", None) if inputs is None else inputs
        if inputs is None or not inputs.numel():
            raise ModelError("generate needs input_ids, (batch, seq), with a token at least")
        mask, streams = options.pop("attention_mask", None), pop_streams(options)
        if self.embedding is not None and streams.get(NUMBER_MASK.name) is None:
            raise SchemaError(
                f"the prompts come without the number streams that {type(self.embedding).__name__}"
                " reads: give all that tokenizer(..., return_numbers=True) returns; a pipeline does"
                " so with pipeline_class=numtok_torch.auto.NumberTextGeneration"
            )
        batch = {"input_ids": inputs, "attention_mask": mask, **streams}
        if mask is None:
            batch["attention_mask"] = torch.ones_like(inputs)
        elif not self.decodes and not bool(mask[:, -1].all()):
            raise ModelError("prompts are padded on the left: set tokenizer.padding_side = 'left'")
        on_device = {name: one.to(self.device) for name, one in batch.items() if one is not None}
        number_tokenizer = (
            beside(self.name_or_path, self._where) if tokenizer is None else tokenizer
        )
        call = Call.of(self, number_tokenizer, len(inputs), self._lengths(options, inputs))
        writing, output = call.write(on_device, return_dict_in_generate=True)
        if not self._asks(options, "return_dict_in_generate", return_dict_in_generate):
            return output.sequences
        output["number_value"] = values_of(call, writing, output.sequences, on_device)
        return output

    def _asks(self, options: dict[str, Any], name: str, value: Any = None) -> Any:
        """Return ``value`` if there is one, else the option, also where a generation config has it."""
        return option_of(self, options, name) if value is None else value

    def _lengths(self, options: dict[str, Any], inputs: Tensor) -> dict[str, Any]:
        """Return the options with ``max_new_tokens`` and how many rows there will be."""
        if (new := self._asks(options, "max_new_tokens")) is None:
            longest = self._asks(options, "max_length")
            before = 1 if self.decodes else inputs.shape[1]
            new = NEW_TOKENS if longest is None else longest - before
        rows = {
            name: self._asks(options, name) or 1 for name in ("num_beams", "num_return_sequences")
        }
        rest = {name: one for name, one in options.items() if name != "max_length"}
        return {"use_cache": True, **rest, **rows, "max_new_tokens": new}


# the names by which earlier versions' folders ask for the class
NumberModelForCausalLM = NumberModelForMaskedLM = NumberModelForSeq2SeqLM = PreTrainedNumberModel
NumberModelForSequenceClassification = NumberModelForTokenClassification = PreTrainedNumberModel


def _one_device(device_map: Any) -> Any:
    """Return the device that a ``device_map`` names for the whole model; None if there is none.
    ModelError for several.
    """
    if isinstance(device_map, Mapping) and device_map.keys() == {""}:
        device_map = device_map[""]
    several = isinstance(device_map, Mapping)
    if several or device_map in ("auto", "balanced", "balanced_low_0", "sequential"):
        raise ModelError(
            f"a number model is on one device, not on those of device_map={device_map!r}; name the"
            " device, as in device_map='cpu'"
        )
    return device_map


def beside(folder: str, where: Mapping[str, Any]) -> Tokenizer:
    """Load the tokenizer that lies in the folder of a model, or on the Hub, in the same revision."""
    options = {"_raise_exceptions_for_missing_entries": False, **where}
    names = (SETTINGS_FILE, TOKENIZER_FILE) if folder else ()
    files = [cached_file(folder, name, **options) for name in names]
    if not files or None in files:
        raise ModelError(
            "no tokenizer lies beside the model, and numbers are written with one: generate(...,"
            " tokenizer=...)"
        )
    return Tokenizer.from_pretrained(Path(str(files[0])).parent)


def values_of(
    call: Call, writing: Writing, sequences: Tensor, prompts: dict[str, Tensor]
) -> Tensor:
    """Return the values of the numbers in ids (rows, seq), NaN elsewhere: float64 (rows, seq)."""
    values = torch.full(sequences.shape, torch.nan, dtype=torch.float64)
    if not call.model.decodes and {NUMBER_MASK.name, NUMBER_VALUE.name} <= prompts.keys():
        elsewhere = ~prompts[NUMBER_MASK.name].bool()
        read = prompts[NUMBER_VALUE.name].double().masked_fill(elsewhere, torch.nan).cpu()
        values[:, : writing.width] = read.repeat_interleave(len(values) // len(read), 0)
    for row, (_, places) in enumerate(call.written(writing, sequences)):
        for place, word in places.items():
            values[row, writing.width + place] = call.value(word)
    return values


class NumberTextGeneration(TextGenerationPipeline):  # type: ignore[misc,unused-ignore]
    """``pipeline("text-generation", folder, trust_remote_code=True)``: text in, text out, with the
    numbers of both; of a model in memory, with ``pipeline_class=NumberTextGeneration``.

    What it returns has ``number_value`` beside ``generated_text``.

    Example:
        >>> import numtok.hf, numtok_torch, transformers
        >>> tokenizer = numtok.hf.NumberTokenizer.from_pretrained()
        >>> data = numtok_torch.NumberDataset(tokenizer.numtok.encode_batch(["It weighs 1.5 kg"]))
        >>> sizes = {"vocab_size": len(tokenizer), "d_model": 8, "n_layers": 1, "n_heads": 1}
        >>> backbone = numtok_torch.xval_gpt2(**sizes)
        >>> model = PreTrainedNumberModel.build(backbone, data, tokenizer)
        >>> parts = {"tokenizer": tokenizer, "pipeline_class": NumberTextGeneration}
        >>> write = transformers.pipeline("text-generation", model, **parts)
        >>> 5.0 in write("It weighs 5 kg", max_new_tokens=4)[0]["number_value"]
        True
    """

    def preprocess(self, prompt_text: Any, **options: Any) -> Any:  # type: ignore[override,unused-ignore]
        asked: dict[str, Any] = {"return_numbers": True}
        if not isinstance(prompt_text, str):  # a chat
            asked = {"tokenizer_kwargs": asked}
        chosen = options.get("tokenizer_encode_kwargs") or {}
        options["tokenizer_encode_kwargs"] = asked | chosen
        inputs = super().preprocess(prompt_text, **options)  # type: ignore[no-untyped-call,unused-ignore]
        width = inputs["input_ids"].shape[-1]  # handle_long_generation="hole" keeps the last ids
        columns = {name: one for name, one in pop_streams(inputs).items() if one is not None}
        return inputs | {name: one[:, -width:] for name, one in columns.items()}

    def _forward(self, model_inputs: Any, **options: Any) -> Any:  # type: ignore[override,unused-ignore]
        options |= {"tokenizer": self.tokenizer, "return_dict_in_generate": True}
        options |= pop_streams(model_inputs)
        return super()._forward(model_inputs, **options)  # type: ignore[no-untyped-call,unused-ignore]

    def postprocess(self, model_outputs: Any, *arguments: Any, **options: Any) -> Any:
        """Decode each row with its own numbers."""
        ids, values = model_outputs["generated_sequence"][0], model_outputs["number_value"][0]
        width, values_of_ids = model_outputs["input_ids"].shape[-1], {}
        # As the base class decodes them; the new text last, as it may have the ids of the prompt.
        for part in (slice(width), slice(width, None)):
            for row, row_values in zip(ids[:, part], values[:, part], strict=True):
                values_of_ids[tuple(row.tolist())] = row_values.tolist()
        tokenizer: Any = self.tokenizer
        shown: Any = copy.copy(self)
        shown.tokenizer = copy.copy(tokenizer)
        shown.tokenizer.decode = lambda ids, **more: tokenizer.decode(
            ids, number_value=values_of_ids[tuple(ids)], **more
        )
        return TextGenerationPipeline.postprocess(shown, model_outputs, *arguments, **options)
