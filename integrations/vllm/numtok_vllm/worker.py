"""``--worker-cls numtok_vllm.worker.NumberWorker``: after each token that begins a number, the model's
head says which.
"""

from __future__ import annotations

from typing import Any

from vllm.v1.worker.cpu_worker import CPUWorker


class NumberWorker(CPUWorker):
    """vLLM's worker on a CPU; the ids of numbers that were sampled get their values."""

    def load_model(self, *args: Any, **options: Any) -> None:
        """Load the model, and let it see what is sampled."""
        super().load_model(*args, **options)
        self.model_runner.sampler.register_forward_hook(self.model_runner.get_model().say_numbers)
