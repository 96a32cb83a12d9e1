"""What a process of ``torch.distributed`` does in the tests: in a module of its own, which spawned
processes can import.
"""

import pickle
from pathlib import Path


def values(rows):
    return [int(row["number_value"][0]) for row in rows]


def read_share(rank, folder, meeting):
    """Read the share of one of two ranks, and again after a pickle; write both to a file in
    ``meeting``.
    """
    import torch

    from numtok_torch import IterableNumberDataset

    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{meeting}/rendezvous", rank=rank, world_size=2
    )
    data = IterableNumberDataset(folder, shuffle=True)
    rows = values(data)
    packed = pickle.dumps(data)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    # A spawned worker does not know of torch.distributed; the data set takes the rank along.
    (Path(meeting) / f"rank{rank}").write_bytes(pickle.dumps((rows, values(pickle.loads(packed)))))
