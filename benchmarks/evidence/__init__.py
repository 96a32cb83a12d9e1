"""Experiments on what number representations teach a model, one module and one command for each
table or figure of a paper.

In: generated text, and the corpora of the shared folder. Out: one JSON file per run in ``results``,
    and docs/evidence.md and docs/evidence/, which are made of these files. Every run uses public
    functions alone: text files, ``numtok.encode_files`` to Parquet, ``NumberDataset``,
    ``NumberModel``, ``generate``, ``metrics``. May import numtok, numtok_torch and transformers.
"""
