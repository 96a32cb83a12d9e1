"""Check what an import loads, and what works without transformers or torch."""

import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

from hf_cases import ours
from new_process import run

from numtok.errors import MissingDependencyError


def test_import_without_transformers(tmp_path):
    script = """
        import sys
        sys.modules["transformers"] = None
        import numtok
        try:
            import numtok.hf
        except numtok.NumtokError as error:
            print(type(error).__name__, error)
    """
    said = run(script, tmp_path)
    assert said.startswith(MissingDependencyError.__name__) and "numtok[hf]" in said, said


def test_import_without_torch(tmp_path):
    """Lists and numpy arrays need no torch."""
    ours("bert").save_pretrained(tmp_path / "saved")
    script = """
        import sys
        sys.modules["torch"] = None
        import numtok.hf
        tok = numtok.hf.NumberTokenizer.from_pretrained(sys.argv[1])
        got = tok(["a 5", "b"], padding=True, return_tensors="np", return_numbers=True)
        print(got["number_value"].dtype, tok.batch_decode(got["input_ids"], number_value=got["number_value"], skip_special_tokens=True))
        print(sorted({"datasets", "ray"} & set(sys.modules)))
    """
    assert run(script, tmp_path, tmp_path / "saved").splitlines() == ["float64 ['a 5', 'b']", "[]"]
