"""Shards on a real Ray cluster of two nodes: the same bytes as on one machine, also when a node is
killed in the middle.
"""

import contextlib
import os
import random
import sys
import time
from importlib.util import find_spec

import interrupts
import jobs
import pyarrow as pa
import pytest
from input_files import lines_of, write_texts

import numtok
from numtok.errors import JobError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is an extra"),
]
SHARDS, PATIENCE = 8, interrupts.LONG


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    started = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    started.add_node(num_cpus=1)
    yield started
    started.shutdown()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Of which a shard takes about a second."""
    text = " ".join(f"{number / 7} of 1,234 is -{number};" for number in range(400))
    texts = (f"{row}: {text}" for row in range(SHARDS * 150))
    return write_texts(tmp_path_factory.mktemp("corpus") / "in.jsonl", texts)


@pytest.fixture(scope="module")
def unbroken(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken") / "out"
    numtok.encode_files(corpus, folder, shards=SHARDS, workers=1)
    return jobs.shards(folder)


@contextlib.contextmanager
def command(corpus, folder, address):
    given = f"encode {corpus} -o {folder}/ --shards {SHARDS} --ray {address}".split()
    running = interrupts.start([sys.executable, "-m", "numtok_cli.main", *given])
    with running:
        yield running


def test_a_cluster_writes_the_same_bytes(cluster, corpus, unbroken, tmp_path):
    with command(corpus, tmp_path / "out", cluster.address) as running:
        _, told = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, told
    assert jobs.shards(tmp_path / "out") == unbroken
    assert (tmp_path / "out" / "__numtok" / "manifest.json").is_file()


def test_nodes_killed_at_random_moments(cluster, corpus, unbroken, tmp_path):
    """``NUMTOK_KILLS=100`` for as many, ``NUMTOK_SEED`` for others; several in each job."""
    moments = int(os.environ.get("NUMTOK_KILLS", "3"))
    chance, made = random.Random(int(os.environ.get("NUMTOK_SEED", "1"))), 0
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


@pytest.fixture
def joined(cluster):
    """This program as a part of the cluster."""
    import ray

    ray.init(address=cluster.address, log_to_driver=False)
    yield ray
    ray.shutdown()


def test_blocks_of_ray_data(joined, corpus):
    """As the docs have it."""
    tokenizer = numtok.Tokenizer.from_pretrained(None, "xval")

    def encode(block):
        return pa.Table.from_batches([tokenizer.encode_batch(block["text"].combine_chunks())])

    blocks = joined.data.read_json(str(corpus)).limit(50)
    rows = blocks.map_batches(encode, batch_format="pyarrow").take_all()
    texts = [line["text"] for line in lines_of(corpus)]
    expected = {tuple(tokenizer(text)["input_ids"].tolist()) for text in texts}
    assert len(rows) == 50 and {tuple(row["input_ids"]) for row in rows} <= expected


def test_jobs_in_one_folder_within_one_program(joined, tmp_path):
    """Processes of Ray outlive a job; the next one with other options is another."""
    (tmp_path / "a.txt").write_text("is 5\n" * 20)
    for numbers, column in (("xval", "number_scaled"), ("bits", "number_bits")):
        how = {"numbers": numbers, "shards": 2, "overwrite": True, "ray": "auto"}
        numtok.encode_files(tmp_path / "a.txt", tmp_path / "out", **how)
        assert column in jobs.table(tmp_path / "out").column_names


def test_ray_on_this_machine_alone_and_no_cluster(corpus, unbroken, tmp_path):
    numtok.encode_files(corpus, tmp_path / "out", shards=SHARDS, ray="local")
    assert jobs.shards(tmp_path / "out") == unbroken
    with pytest.raises(JobError, match="there is no Ray cluster at 'nowhere'"):
        numtok.encode_files(corpus, tmp_path / "other", shards=2, ray="nowhere")
