"""What a representation teaches a model: one module and one command for each table or figure of the
papers.

In: generated text, and what the shared folder holds. Out: one JSON file per run in ``results``, and
    docs/evidence.md and docs/evidence/ made of them. Every run goes the
public way: text files, ``numtok.encode_files`` to Parquet, ``NumberDataset``, ``NumberModel``,
    ``generate``, ``metrics``. May import numtok, numtok_torch and transformers.
"""
