"""An exported tokenizer in other programs: the pre-tokenizer of llama.cpp; ``AutoTokenizer`` in a
process that knows no numtok; and JavaScript.
"""

import json
import random
import shutil
import subprocess

import hf_cases
import new_process
import pytest
import tokenizers
import trained
from tokenizers import Regex, pre_tokenizers

from numtok import Digits, Grammar, Subword, Tokenizer

FORMS = {"1": Digits(1), "3": Digits(3), "left": Digits(3, align="left"), "subword": Subword()}
TEXTS = [
    *trained.CORPUS,
    "The mass is -1234567.8901e-10 kg, naïve (-.12345) 5 é",
    "v1.2.3 10-20, 007 = 1,234 B2B 2020-01-02 温度-5度 10² wait...12345 F.23456",
    "-5 +3.25e+7 .5\n.12345 1e5  22   333 4444 2.e+3",
]


@pytest.mark.filterwarnings("ignore::numtok.engines.choose.EngineWarning")
@pytest.mark.parametrize("kind", ["gpt2", "neox"])
def test_single_digits_are_cut_as_llama_cpp_cuts_them(kind, tmp_path):
    """By the pre-tokenizer `smollm`: digits alone, then GPT-2's pattern; no normalizer."""
    grammar = Grammar(signs=False, exponent=False, leading_dot=False)
    Tokenizer(trained.config(kind), [Digits(1)], grammar).export(tmp_path)
    exported = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    smollm = trained.source(kind)
    smollm.normalizer = None
    cuts = [pre_tokenizers.Split(Regex(r"\p{N}"), "isolated"), smollm.pre_tokenizer]
    smollm.pre_tokenizer = pre_tokenizers.Sequence(cuts)
    draw = random.Random(0)
    parts = [*"0123456789.,-+eE\u2212 '\n\t", "  ", "ab", "é", "中", "😀", "'s", "\r\n", "1234"]
    texts = ["".join(draw.choices(parts, k=draw.randrange(20))) for _ in range(2000)]
    expected = [one.ids for one in smollm.encode_batch(texts)]
    assert [one.ids for one in exported.encode_batch(texts)] == expected


@pytest.mark.slow
def test_auto_tokenizer_without_numtok_gives_our_ids(tmp_path):
    kinds = ["gpt2", "llama", "t5", "bert"]
    for kind in kinds:
        tokenizer = hf_cases.build_ours(kind, (Digits(3),))
        tokenizer.export(tmp_path / kind)
        read = tokenizers.Tokenizer.from_file(str(tmp_path / kind / "tokenizer.json"))
        facts = {
            "ids": [one.ids for one in read.encode_batch(TEXTS)],
            "eos": tokenizer.eos_token,
            "template": tokenizer.chat_template,
        }
        (tmp_path / kind / "facts").write_text(json.dumps(facts), "utf-8")
    script = """
        import json, pathlib, sys
        from transformers import AutoTokenizer
        folder, texts = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
        for kind in sys.argv[3:]:
            facts = json.loads((folder / kind / "facts").read_text("utf-8"))
            for model in (None, "gpt2", "llama", "qwen2", "phi3"):  # a config.json beside it
                if model:
                    config = json.dumps({"model_type": model})
                    (folder / kind / "config.json").write_text(config, "utf-8")
                read = AutoTokenizer.from_pretrained(folder / kind, trust_remote_code=model == "phi3")
                assert [read(text).input_ids for text in texts] == facts["ids"], (kind, model)
                assert (read.eos_token, read.chat_template) == (facts["eos"], facts["template"])
        assert not [name for name in sys.modules if name.startswith("numtok")]
        print("read")
    """
    assert new_process.run(script, tmp_path, tmp_path, json.dumps(TEXTS), *kinds) == "read\n"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::numtok.engines.choose.EngineWarning")
def test_javascript_gives_our_ids(tmp_path):
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("there is no node here")
    command = ["npm", "install", "--no-audit", "--no-fund", "@huggingface/tokenizers@0.2.0"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    if done.returncode:
        pytest.skip(f"npm does not give @huggingface/tokenizers: {done.stderr[-200:]}")
    expected = {}
    for kind in set(trained.KINDS) - {"t5"}:  # whose normalizer Nmt JavaScript has not
        for name, form in FORMS.items():
            folder = str(tmp_path / f"{kind}-{name}")
            Tokenizer(trained.config(kind), [form]).export(folder)
            plain = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
            expected[folder] = [one.ids for one in plain.encode_batch(TEXTS)]
    (tmp_path / "texts.json").write_text(json.dumps(TEXTS), "utf-8")
    (tmp_path / "ids.mjs").write_text(
        """
        import { readFileSync } from "fs";
        import { Tokenizer } from "@huggingface/tokenizers";
        const read = (path) => JSON.parse(readFileSync(path, "utf8"));
        const found = {}, texts = read("texts.json");
        for (const folder of process.argv.slice(2)) {
          const files = ["tokenizer.json", "tokenizer_config.json"].map((file) => `${folder}/${file}`);
          const tokenizer = new Tokenizer(...files.map(read));
          found[folder] = texts.map((text) => tokenizer.encode(text).ids);
        }
        console.log(JSON.stringify(found));
        """,
        "utf-8",
    )
    node = ["node", "ids.mjs", *expected]
    done = subprocess.run(node, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == expected
