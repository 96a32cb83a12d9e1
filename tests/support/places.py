"""Where things lie: the repository's root and what the tests read of it, and the shared data."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "tests" / "support"
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples"
SAMPLE = EXAMPLES / "sample.jsonl"


def shared_folder():
    """The corpora and tokenizers that are too large for the repository; may be absent."""
    named = os.environ.get("NUMTOK_SHARED")
    return Path(named) if named else ROOT.parent / "shared"
