"""Shards on a real Ray cluster of two nodes: the same bytes as on one machine, also when a node is
killed in the middle.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jobs
import pyarrow as pa
import pytest

import numtok
from numtok.errors import JobError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is an extra"),
]
SHARDS, PATIENCE = 8, 120.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    started = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    started.add_node(num_cpus=1)
    yield started
    started.shutdown()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of which a shard takes about a second."""
    path = tmp_path_factory.mktemp("corpus") / "in.jsonl"
    text = " ".join(f"{number / 7} of 1,234 is -{number}e3;" for number in range(400))
    path.write_text(
        "".join(json.dumps({"text": f"{row}: {text}"}) + "\n" for row in range(SHARDS * 150))
    )
    return path


@pytest.fixture(scope="module")
def unbroken(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("unbroken") / "out"
    numtok.encode_files(corpus, folder, shards=SHARDS, workers=1)
    return jobs.shards(folder)


@contextlib.contextmanager
def command(corpus: Path, folder: Path, address: str) -> Iterator[subprocess.Popen[str]]:
    given = ["encode", str(corpus), "-o", f"{folder}/", "--shards", str(SHARDS), "--ray", address]
    with subprocess.Popen(
        [sys.executable, "-m", "numtok_cli.main", *given],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        yield running


def test_a_cluster_writes_the_same_bytes(
    cluster: Any, corpus: Path, unbroken: dict[str, str], tmp_path: Path
) -> None:
    with command(corpus, tmp_path / "out", cluster.address) as running:
        _, told = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, told
    assert jobs.shards(tmp_path / "out") == unbroken
    assert (tmp_path / "out" / "__numtok" / "manifest.json").is_file()


def test_a_shard_that_fails_for_good_is_told_and_the_others_are_done(
    cluster: Any, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for name in "abc":
        (tmp_path / "in" / f"{name}.jsonl").write_text(
            '{"text": "5 km"}\n' * 10 + ("{broken\n" if name == "b" else "")
        )
    with command(tmp_path / "in", tmp_path / "out", cluster.address) as running:
        _, told = running.communicate(timeout=PATIENCE)
    assert running.returncode == 1
    assert (
        f"1 of {SHARDS} shards failed" in told
        and "b.jsonl:11:2" in told
        and "run the same again" in told
    )
    assert len(numtok.job_status(tmp_path / "out").done) == SHARDS - 1


def test_nodes_killed_at_random_moments(
    cluster: Any, corpus: Path, unbroken: dict[str, str], tmp_path: Path
) -> None:
    """``NUMTOK_KILLS=100`` for as many, ``NUMTOK_SEED`` for others; several in each job."""
    moments, chance = (
        int(os.environ.get("NUMTOK_KILLS", "3")),
        random.Random(int(os.environ.get("NUMTOK_SEED", "1"))),
    )
    made = 0
    while moments > 0:
        out = tmp_path / str(made)
        while not (out / "__numtok" / "manifest.json").exists():
            with command(corpus, out, cluster.address) as running:
                while moments > 0 and running.poll() is None:
                    node = cluster.add_node(num_cpus=2)  # its processes take 3 s to start
                    end = time.monotonic() + 6 * chance.random()
                    while time.monotonic() < end and running.poll() is None:
                        time.sleep(0.01)
                    moments -= running.poll() is None
                    cluster.remove_node(node, allow_graceful=False)
                _, told = running.communicate(timeout=PATIENCE)
            # a shard that lost its node each time is left to the next run
            assert running.returncode == 0 or "its worker died" in told, told
        assert jobs.shards(out) == unbroken
        made += 1


def test_blocks_of_ray_data(cluster: Any, corpus: Path) -> None:
    """As the docs have it."""
    import ray

    tokenizer = numtok.Tokenizer.from_pretrained(None, "xval")

    def encode(block: pa.Table) -> pa.Table:
        return pa.Table.from_batches([tokenizer.encode_batch(block["text"].combine_chunks())])

    ray.init(address=cluster.address, log_to_driver=False)
    try:
        rows = (
            ray.data.read_json(str(corpus))
            .limit(50)
            .map_batches(encode, batch_format="pyarrow")
            .take_all()
        )
    finally:
        ray.shutdown()
    texts = [json.loads(line)["text"] for line in corpus.read_text().splitlines()]
    expected = {tuple(tokenizer(text)["input_ids"].tolist()) for text in texts}
    assert len(rows) == 50 and {tuple(row["input_ids"]) for row in rows} <= expected


def test_jobs_in_one_folder_within_one_program(cluster: Any, tmp_path: Path) -> None:
    """Processes of Ray outlive a job; the next one with other options is another."""
    import ray

    (tmp_path / "a.txt").write_text("is 5\n" * 20)
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        for name, overwrite in (("number_scaled", False), ("number_bits", True)):
            numbers = "xval" if name == "number_scaled" else "bits"
            numtok.encode_files(
                tmp_path / "a.txt",
                tmp_path / "out",
                numbers=numbers,
                shards=2,
                overwrite=overwrite,
                ray="auto",
            )
            assert name in jobs.table(tmp_path / "out").column_names
    finally:
        ray.shutdown()


def test_no_cluster(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(JobError, match="there is no Ray cluster at 'nowhere'"):
        numtok.encode_files(corpus, tmp_path / "out", shards=2, ray="nowhere")
