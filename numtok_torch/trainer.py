"""The Trainer of transformers, for a :class:`~numtok_torch.NumberModel`. Any Trainer trains one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from numtok.errors import MissingDependencyError, SchemaError
from numtok_torch.data.dataset import Encoded
from numtok_torch.metrics import number_metrics, numbers_only
from numtok_torch.model.backbone import ModelError, check_own_tokenizer, check_rows, unwrapped
from numtok_torch.model.build import check_learns
from numtok_torch.model.delta import has_base
from numtok_torch.model.model import NumberModel
from numtok_torch.model.saving import describe, without_base, write_settings

try:
    from transformers import Trainer
except ImportError as error:
    raise MissingDependencyError(
        "NumberTrainer needs transformers: pip install 'numtok[hf]'"
    ) from error


PARTS = ("token_loss", "number_loss")  # of the loss, as a model says them


class NumberTrainer(Trainer):
    """A Trainer of transformers for a :class:`~numtok_torch.NumberModel`, with the same arguments.

    It averages the loss of numbers over all batches of a step, in every process, where transformers
    counts tokens alone; smooths the labels of tokens with ``label_smoothing_factor``; reports
    :func:`~numtok_torch.metrics.number_metrics` in ``evaluate()`` of a model with a head; and
    writes checkpoints that transformers' Auto classes load (:mod:`numtok_torch.auto`).

    In training it logs ``token_loss`` and ``number_loss`` beside ``loss``.

    Args:
        model, args, data_collator, arguments, options: those of transformers' Trainer. Without a
            collator that of ``NumberModel.build`` is taken.
        head_learning_rate: of the number embedding and the head, which start anew and may learn
            faster than a pretrained backbone; None for that of the backbone.

    Raises:
        ModelError: for a model in which nothing can learn, for another model, one without a word
            vector for each token of the data, or one that was made for another tokenizer than the
            data.
        SchemaError: for data of numtok without a collator.

    Example:
        >>> import numtok, numtok_torch, transformers
        >>> tokenizer = numtok.Tokenizer.from_pretrained()
        >>> data = numtok_torch.NumberDataset(tokenizer.encode_batch(["It weighs 1.5 kg"]))
        >>> sizes = {"vocab_size": tokenizer.vocab_size, "d_model": 8, "n_layers": 1, "n_heads": 1}
        >>> backbone = numtok_torch.xval_gpt2(**sizes)
        >>> model = numtok_torch.NumberModel.build(backbone, data, tokenizer)
        >>> arguments = transformers.TrainingArguments("out", max_steps=1, save_strategy="no")
        >>> NumberTrainer(model, arguments, train_dataset=data).train().global_step
        {'train_runtime': ...}
        1
    """

    def __init__(
        self,
        model: Any = None,
        args: Any = None,
        data_collator: Any = None,
        *arguments: Any,
        head_learning_rate: float | None = None,
        **options: Any,
    ) -> None:
        self.head_learning_rate = head_learning_rate
        self.sums: dict[str, Any] = {}  # of each part of the loss, since it was logged
        self.logged_at = 0  # the step of that
        self.summed_in: Any = None  # the state of the training that they are of
        super().__init__(model, args, data_collator, *arguments, **options)
        self.numbers = unwrapped(self.model)
        if not isinstance(self.numbers, NumberModel):
            raise ModelError(
                f"NumberTrainer needs a NumberModel, got {type(self.model).__name__}; use Trainer"
            )
        collator = data_collator or self.numbers.collator
        self.data_collator = collator or self.data_collator
        if isinstance(self.train_dataset, Encoded) and not collator:
            raise SchemaError(
                "NumberTrainer needs data_collator=NumberCollator.from_schema(data.schema, ...), or a"
                " model of NumberModel.build, which has one"
            )
        check_learns(self.numbers)
        self._check_tokenizer(self.train_dataset, self.eval_dataset, self.data_collator)
        check_rows(self.numbers.transformer, getattr(self.data_collator, "vocab_size", None) or 0)
        self.smoothing = 0.0
        if self.numbers.task is None:
            self.loss_is_scaled_for_ga = True
            if self.label_smoother is not None:
                self.smoothing, self.label_smoother = self.label_smoother.epsilon, None
        elif self.numbers.head is not None and self.label_smoother is not None:
            raise ModelError(
                "transformers smooths the labels of a classifier without the loss of its head; leave"
                " label_smoothing_factor out, or take head=None"
            )
        if self.numbers.head is not None and self.compute_metrics is None:
            if self.args.batch_eval_metrics:
                raise ModelError(
                    "number_metrics measures all numbers at once: leave out batch_eval_metrics=True,"
                    " or give compute_metrics=..."
                )
            self.compute_metrics = number_metrics
            self.preprocess_logits_for_metrics = numbers_only

    def _check_tokenizer(self, *sources: Any) -> None:
        """Refuse data of another tokenizer than the model's; a model that knows none takes that of
        the data.
        """
        for source in sources:
            of_source = getattr(source, "tokenizer_identity", None)
            if of_source is None:
                continue
            if self.numbers.tokenizer_identity is None:
                self.numbers.tokenizer_identity = dict(of_source)
            check_own_tokenizer(self.numbers.tokenizer_identity, of_source)

    def call_model_init(self, trial: Any = None) -> Any:
        """Make the model that ``model_init`` makes anew for each training."""
        model = super().call_model_init(trial)
        self.numbers = unwrapped(model)
        return model

    def get_batch_samples(
        self, epoch_iterator: Iterator[Any], num_batches: int, device: torch.device
    ) -> tuple[list[Any], Any]:
        """Return the batches of a step, each with the count of numbers in all of them."""
        batches, tokens = super().get_batch_samples(epoch_iterator, num_batches, device)
        if self.numbers.task is not None:
            return batches, tokens
        count = torch.tensor(float(sum(map(self.numbers.count_numbers, batches))), device=device)
        if (
            tokens is not None
            and self.args.world_size > 1
            and self.args.average_tokens_across_devices
        ):
            count = self.accelerator.gather(count).sum()
        count = count / max(self.args.n_gpu, 1)
        return [{**batch, "num_numbers_in_batch": count.clamp(min=1)} for batch in batches], tokens

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        """Save a checkpoint; of a model with adapters, without the weights they were put into."""
        if not isinstance(self.model, NumberModel):  # with adapters of peft around it
            super()._save(output_dir, state_dict)
            return
        # sharded weights come gathered, and are written as they come
        if state_dict is None and has_base(self.model):
            state_dict, settings = without_base(self.model, True)
        else:
            settings = describe(self.model)
        super()._save(output_dir, state_dict)
        if self.args.should_save:
            write_settings(settings, Path(output_dir or str(self.args.output_dir)))

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """Return the model's loss, with smoothed labels."""
        if self.smoothing:
            inputs = {**inputs, "smoothing": self.smoothing}
        loss, outputs = super().compute_loss(model, inputs, True, num_items_in_batch)
        if model.training:
            self._sum_parts(outputs, self._weight_in_step(num_items_in_batch))
        return (loss, outputs) if return_outputs else loss

    def _sum_parts(self, outputs: dict[str, Any], weight: float) -> None:
        """Sum up the parts of the loss, anew where training begins, is resumed, or is tried again:
        transformers then makes a new state.
        """
        if self.summed_in is not self.state:
            self.summed_in, self.sums = self.state, {}
            self.logged_at = self.state.global_step
        for name in PARTS:
            if (part := outputs.get(name)) is not None:
                self.sums[name] = self.sums.get(name, 0.0) + weight * part.detach().mean()

    def _weight_in_step(self, tokens: Any) -> float:
        """Return what the loss of a batch is multiplied with for the log, as transformers does it:
        shares of the tokens in all processes are averaged over them, means of classifiers over the
        batches of the step.
        """
        if self.numbers.task is not None:
            return 1 / self.current_gradient_accumulation_steps
        if tokens is None or not self.args.average_tokens_across_devices:
            return 1.0
        processes = self.accelerator.num_processes // self.get_tp_size()
        return float(processes if self.args.n_gpu <= 1 else self.args.n_gpu)

    def create_optimizer(self, *arguments: Any, **options: Any) -> Any:
        """Make the optimizer of transformers, with the layers in groups of their own."""
        is_new = self.optimizer is None
        optimizer = super().create_optimizer(*arguments, **options)
        if is_new and self.head_learning_rate is not None:
            layers = (self.numbers.embedding, self.numbers.head)
            ids_of_layers = {
                id(one) for layer in layers if layer is not None for one in layer.parameters()
            }
            for group in list(optimizer.param_groups):
                ours = [one for one in group["params"] if id(one) in ids_of_layers]
                group["params"] = [one for one in group["params"] if id(one) not in ids_of_layers]
                if ours:
                    optimizer.add_param_group(
                        {**group, "params": ours, "lr": self.head_learning_rate}
                    )
        return optimizer

    def log(self, logs: dict[str, float], *arguments: Any, **options: Any) -> None:
        """Log the parts of the loss beside it: means over the steps since they were logged."""
        if "loss" in logs and (steps := self.state.global_step - self.logged_at) > 0:
            zero = torch.zeros((), device=self.args.device)
            sums = torch.stack([self.sums.get(name, zero) for name in PARTS]).float()
            means = self.accelerator.gather(sums[None]).mean(0) / steps  # over all processes
            logs |= {
                name: one
                for name, one in zip(PARTS, means.tolist(), strict=True)
                if name in self.sums
            }
            self.sums, self.logged_at = {}, self.state.global_step
        super().log(logs, *arguments, **options)
