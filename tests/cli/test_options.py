"""Every option of every command does something where it applies, and is refused with a sentence
where it does not; and files of options are held to their types.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import click
import jobs
import pytest
from command import NUMTOK, ok, refused, run
from input_files import decoded, write_texts
from numtok_cli.encode import REPRESENTATIONS as LISTED
from numtok_cli.main import cli
from places import SAMPLE

import numtok
from numtok.numbers import grammar
from numtok.options import shown_option
from numtok.representations import REPRESENTATIONS
from numtok.tokenizer.tokenizer_json import DEFAULT_FOLDER

EN = "sample.jsonl -o out.parquet"
# A command, and what may be added to it. Where a "!" follows, it must be refused with what follows
# that; else the outcome must be another.
CASES = [
    (without.replace("EN", EN), added)
    for without, *more in (
        line.split(" | ")
        for line in r"""
encode EN | --numbers bits | --grammar data | --pattern \d | --overflow clip
encode EN | --dense ! has no tensors, which dense=True (--dense) is for | --scale 1 | --clip 1 | --fit-quantile 0.5 | --tokenizer mine
encode EN | --text-unit file ! (--text-unit file) is for .txt files | --leading-space separate
encode EN | --output-format jsonl | --keep-text | --keep-column id | --keep-column no ! no column
encode EN | --layout token | --compression gzip | --tensors extension ! is for columns of tensors
encode EN | --pack 64 | --pack-mode best-fit ! --pack | --end-token the ! --pack
encode EN | --shards 3 ! are for a folder | --shard-size 1kB ! for a folder
encode EN | --shard 1/2 ! for a folder
encode EN | --split a=0.5,b=0.5 ! for a folder | --split-seed 1 ! --split | --card ! for a folder | --ray auto ! for a folder
encode EN | --config job.toml | --template '{no}' ! correct the template | --workers 0 ! not in the range
encode EN | --batch-bytes 18446744073709551616 ! is too large
encode EN --numbers subword | --overflow clip ! has no overflow='clip' (--overflow)
encode EN --numbers bits | --dense | --scale 1 ! only xval has | --clip 1 ! only xval has
encode EN --numbers bits | --fit ! only xval has a scale
encode EN --numbers bits | --fit-quantile 0.5 ! only xval has a scale
encode EN --scale 1 | --fit-quantile 0.5 ! which fit_quantile=... (--fit-quantile) is to find
encode EN --numbers subword | --leading-space auto ! leading_space='auto' (--leading-space) is for
encode sample.csv -o out.parquet | --text-column id | --template row
encode EN --text-column id | --template {id} ! template=... (--template) and text_column=... (--text-column)
encode semi.csv -o out.parquet | --delimiter ;
encode EN | --delimiter ; ! is for CSV | --delimiter ;; ! one character
encode lines.txt -o out.parquet | --text-column id ! has no columns
encode lines.txt -o out.parquet | --format jsonl ! not valid JSON | --text-unit file
encode EN --tokenizer special.json | --add-special-tokens
encode special.jsonl -o out.parquet | --parse-special
encode bad.jsonl -o out.parquet | --on-error skip
encode sample.jsonl | -o other.parquet
encode sample.jsonl -o - | --output-format arrow | --output-format parquet ! is a file
encode sample.jsonl -o - | --compression zstd ! is for Parquet and Arrow
encode sample.jsonl -o - | --tensors extension ! is for Parquet | --overwrite ! is for a file
encode EN --pack 64 | --layout number ! pack | --pack-mode best-fit | --end-token the
encode sample.jsonl -o out.arrow | --compression gzip ! no compression
encode sample.jsonl -o out.arrow | --tensors lists ! is for Parquet
encode EN --numbers bits --dense | --tensors extension
encode sample.jsonl -o out.jsonl | --compression zstd ! is for Parquet and Arrow
encode sample.jsonl -o there.parquet | --overwrite
encode sample.jsonl -o out/ | --shards 3 | --shard-size 1kB | --split a=0.5,b=0.5 | --card
encode sample.jsonl -o out/ | --engine tokenizers
encode sample.jsonl -o out/ --shards 3 | --shard 1/2
encode sample.jsonl -o out/ --split a=0.5,b=0.5 | --split-seed 1
encode sample.jsonl -o out | --workers 1
encode EN --tokenizer odd.json | --engine gigatoken ! gigatoken
decode encoded.parquet | -o back.jsonl
decode encoded.parquet -o there.jsonl | --overwrite
decode encoded.parquet -o a.txt | --tokenizer mine ! another tokenizer
decode encoded.parquet -o a.txt | --workers 0 ! not in the range
export encoded.parquet out | --to gpt-neox
export new --numbers digits:3 | --to tokenizers
export mine new --numbers digits:3 | --to tokenizers ! give the tokenizer by --tokenizer
export new | --to tokenizers ! needs --numbers | --to megatron ! --to megatron needs an INPUT
export encoded.parquet out --to megatron | --end-token the
export encoded.parquet out --to megatron | --grammar data ! --grammar is for --to tokenizers
export new --to tokenizers --numbers digits:1 | --end-token 0 ! --end-token is for encoded files
export encoded.parquet there --to megatron | --overwrite
export mine --to tokenizers --numbers digits:3 --tokenizer mine | --overwrite
export encoded.parquet out --to megatron --end-token the | --tokenizer mine ! another
export encoded.parquet out --to megatron --end-token 5 | --tokenizer mine ! --tokenizer is for the name
export new --to tokenizers --numbers digits:3 | --tokenizer mine | --grammar european
export new --to tokenizers | --numbers digits:3 | --numbers p10 ! digits:1
export encoded.parquet out --to gpt-neox | --numbers digits:3 ! --numbers is for --to tokenizers
finish damaged | --check ! 0
inspect --numbers bits | --text 5
inspect 5 | --text 6 ! not both
inspect sample.jsonl --numbers bits | --row 2
inspect is5 | --row 2 ! is for a file | --text-column id ! is for a file
inspect is5 | --format csv ! is for a file
inspect sample.csv --numbers bits | --text-column id
inspect semi.csv --numbers bits | --delimiter ;
inspect is5 | --delimiter ; ! is for a file
inspect encoded.parquet | --delimiter ; ! is for a text
inspect encoded.parquet | --text-column id ! is for a text | --format csv ! is for a text
inspect encoded.parquet | --tokenizer mine ! another | --numbers p10 ! is for a text
inspect encoded.parquet | --grammar data ! is for a text | --pattern 2 ! is for a text
inspect encoded.parquet | --overflow clip ! is for a text | --html a.html
inspect lines.txt | --format jsonl ! not valid JSON
inspect 'is 5 or so' --numbers bits | --tokenizer mine
inspect 'is 5' | --numbers p10 | --html a.html
inspect '1,234' --numbers bits | --grammar data
inspect '1 2' --numbers bits | --pattern 2
inspect '1e99' --numbers bits | --overflow clip
inspect '5' --numbers subword | --overflow clip ! has no overflow='clip' (--overflow)
inspect '1 2 3' --numbers bits | --limit 1
inspect 5 --html a.html | --limit 1 ! is for the terminal
playground --port 0 --no-browser | --tokenizer /nowhere ! /nowhere
playground | --port 70000 ! not in the range
playground --tokenizer /nowhere | --no-browser ! /nowhere
stats sample.jsonl | --html a.html | --json a.json | --numbers bits | --grammar data | --pattern \d
stats sample.jsonl | --tokenizer mine | --text-unit file ! for .txt files
stats sample.jsonl | --workers 0 ! not in the range
score answers.jsonl | --prediction other | --target other | --policy strict | --target-policy european | --json a.json
score answers.jsonl | --grounded ! name it by --sources | --sources target ! give --grounded | --tolerance 0.5 ! give --grounded
score answers.jsonl | --ignore none ! give --grounded | --no-compute ! give --grounded | --fail-under 5 ! give --grounded
score answers.jsonl --sources target --fail-under 0 | --grounded
score answers.jsonl --sources target --grounded | --target other ! --target is for answers with one
score answers.jsonl --grounded --fail-under 0 --sources other | --sources target | --tolerance 0.9
score answers.jsonl --grounded --sources dated --fail-under 0 --prediction sum | --no-compute | --ignore none
score answers.jsonl --grounded --sources dated --prediction target | --fail-under 0
stats sample.jsonl | --task read | --task arithmetic | --task nope ! is not one of
stats encoded.parquet | --grammar data ! is for texts | --pattern \d ! is for texts
stats encoded.parquet | --tokenizer mine ! is for texts
stats counted | --grammar data ! is for texts
stats sample.csv | --text-column id | --template row
stats semi.csv | --delimiter ;
stats lines.txt | --text-column id ! has no columns | --format jsonl ! not valid JSON
stats lines.txt | --text-unit file
stats bad.jsonl | --on-error skip
train sample.jsonl | -o new
train sample.jsonl -o new | --vocab-size 300 | --min-frequency 50
train sample.jsonl -o mine | --overwrite
train sample.csv -o new | --text-column id
train semi.csv -o new | --delimiter ;
train lines.txt -o new | --format jsonl ! not valid JSON
train grouped.txt -o new --min-frequency 1 | --grammar european | --pattern [0-9]+
warm-up --tokenizer nowhere | --numbers nothing ! nothing
warm-up --numbers xval | --tokenizer nowhere ! nowhere
""".strip().splitlines()
    )
    for added in more
]


def fits_xval(text):
    """Whether the numbers of a text are of one scale, so that ``encode`` takes it by default."""
    return all(one.value == 0 or 0.5 <= abs(one.value) <= 2050 for one in numtok.extract(text))


OF_ALL = {"--quiet", "--debug", "--help"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with an input for every case."""
    folder = tmp_path_factory.mktemp("made")
    lines = SAMPLE.read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    one_scale = [line for line, row in zip(lines, rows, strict=True) if fits_xval(row["text"])]
    (folder / "sample.jsonl").write_text("\n".join(one_scale) + "\n", "utf-8")
    cells = "".join(f'{row["id"]},"5 of {n}"\n' for n, row in enumerate(rows))
    (folder / "sample.csv").write_text("id,text\n" + cells)
    (folder / "semi.csv").write_text("id;text\n" + cells.replace(",", ";"))
    (folder / "lines.txt").write_text("one 1, two 2\nthree 3\n")
    answer = {"prediction": "3/4", "target": "0.75", "other": "5"}
    answer |= {"dated": "5 and 7", "sum": "12 in 2019"}
    (folder / "answers.jsonl").write_text(json.dumps(answer))
    (folder / "grouped.txt").write_text("a −5 b −6 c 1\u00a0234 d 5\u00a0678\n")
    (folder / "bad.jsonl").write_text('{"text": "1"}\n{"text": \n')
    (folder / "special.jsonl").write_text('{"text": "a<|endoftext|> 5"}\n')
    (folder / "job.toml").write_text('numbers = "bits"\n')
    for name in ("there.jsonl", "there.bin", "there.idx", "there.json"):
        (folder / name).write_text("")
    special = json.loads((DEFAULT_FOLDER / "tokenizer.json").read_text())
    end, first, second = "<|endoftext|>", *({"Sequence": {"id": i, "type_id": 0}} for i in "AB")
    special["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": end, "type_id": 0}}, first],
        "pair": [first, second],
        "special_tokens": {end: {"id": end, "ids": [0], "tokens": [end]}},
    }
    (folder / "special.json").write_text(json.dumps(special))
    (folder / "odd.json").write_text(json.dumps(special | {"normalizer": {"type": "Lowercase"}}))
    ok(f"train {folder}/sample.jsonl -o {folder}/mine --vocab-size 400 -q")
    for name, how in (
        ("encoded.parquet", "--numbers bits"),
        ("there.parquet", "--numbers bits"),
        ("counted/", "--shards 1 --numbers bits"),
        ("damaged/", "--shards 1 --numbers bits"),
    ):
        ok(f"encode {folder}/sample.jsonl -o {folder}/{name} {how} -q")
    (shard,) = (folder / "damaged").glob("*.parquet")
    shard.write_bytes(shard.read_bytes()[:-9] + b"123456789")
    return folder


def outcome(words, made, to, monkeypatch):
    """What a command prints, but for times, and what all files are that it left."""
    shutil.copytree(made, to)
    monkeypatch.chdir(to)
    result = run(words.replace("\\", "\\\\"), input="7\n")
    told = re.sub(r"[\d.]+ [smkMG]\S*(, .*)?", "", result.stdout + result.stderr)
    paths = [path.relative_to(to) for path in to.rglob("*") if path.is_file()]
    own = [path for path in paths if path.name.startswith("there") or not (made / path).exists()]
    return result, (result.exit_code, told, {str(path): (to / path).read_bytes() for path in own})


@pytest.fixture(scope="module")
def outcomes():
    """Cache the outcomes of commands without the options under test, by their words."""
    return {}


@pytest.mark.parametrize(("without", "added"), CASES)
def test_every_option_changes_the_outcome_or_is_refused(
    without, added, made, outcomes, tmp_path, monkeypatch
):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    given, _, refusal = added.partition(" ! ")
    result, found = outcome(f"{without} {given}", made, tmp_path / "a", monkeypatch)
    assert "bug in numtok" not in result.stderr, result.stderr
    if refusal:
        assert result.exit_code in (1, 2) and refusal in result.stderr, result.output
    else:
        assert result.exit_code == 0, result.output
        if without not in outcomes:
            _, outcomes[without] = outcome(without, made, tmp_path / "b", monkeypatch)
        assert found != outcomes[without]


def test_no_option_was_forgotten():
    options = {
        (name, max(param.opts, key=len))
        for name, command in cli.commands.items()
        for param in command.params
        if isinstance(param, click.Option)
    }
    tried = {(without.split()[0], added.split()[0]) for without, added in CASES}
    tried = {(name, {"-o": "--output"}.get(option, option)) for name, option in tried}
    assert {one for one in options if one[1] not in OF_ALL} == tried


# What is shown


def test_the_help_has_groups_and_lists_all_representations():
    told = ok("encode --help")
    titles = re.findall(r"^(\w[\w ]+):$", told, re.M)
    assert titles == [
        "Numbers",
        "Text",
        "Output",
        "Packed rows",
        "Folders of shards",
        "Running",
    ]
    listed = {name.partition(":")[0] for line in LISTED.splitlines() for name in line[:26].split()}
    assert REPRESENTATIONS.keys() <= listed
    (grammars,) = (one.type for one in cli.commands["encode"].params if one.name == "grammar")
    assert tuple(grammars.choices) == grammar.NAMES


OPTIONS = {
    str(one.name): one.opts[-1] for command in cli.commands.values() for one in command.params
}


def test_errors_name_an_option_as_the_command_line_has_it():
    for option, name in OPTIONS.items():
        if name.startswith("--"):
            assert shown_option(option, 5) == f"{option}=5 ({name})"


# Files of options


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("numbres = 'xval'", ["'numbres', which is no option of `numtok encode`"]),
        ("config = 'b.toml'", ["'config', which is no option"]),
        ("numbers = ", ["is no TOML"]),
        ('{"shards": 3}', ["is no TOML"]),
        (None, ["job.toml", "cannot be read: No such file"]),
        ("shards = 0", ["0 is not in the range"]),
        ("keep-text = 1", ["job.toml", "keep_text", "bool"]),
        ("grammar = 5", ["job.toml", "grammar", "str"]),
        ('workers = ["a"]', ["job.toml", "workers", "int"]),
        ("quiet = 5", ["job.toml", "quiet = 5 must be true or false"]),
        ('overflow = "no"', ["job.toml", "overflow", "no"]),
    ],
)
def test_a_wrong_file_of_options_is_named_with_the_key_and_what_it_should_be(
    content, told, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("job.toml").write_text(content + "\n")
    said = refused("encode in.jsonl -o out/ --config job.toml")
    assert all(one in said for one in told), said
    assert not Path("out").exists()


def test_a_grammar_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, text = "european", "1.234,56 € und 12 345, am 12.03.2024"
    values = [1234.56, 12345.0]
    write_texts(Path("in.jsonl"), [text])
    Path("job.toml").write_text(f'grammar = "{name}"\nkeep-text = true\n')
    for given, out in (
        (f"in.jsonl --grammar {name} --keep-text", "a/"),
        ("in.jsonl --config job.toml", "b/"),
    ):
        ok(f"encode {given} -o {out} -q")
        assert jobs.table(Path(out))["number_value"].to_pylist() == [values]
        assert decoded(Path(out)) == [text]
    assert [float(one.value) for one in numtok.extract(text, name)] == values
    assert numtok.corpus_stats("in.jsonl", grammar=name).numbers == len(values)


@pytest.mark.parametrize(
    "given", ["encode a.jsonl -o b.parquet --tokenizer ./pipe", "inspect pipe"]
)
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    write_texts(Path("a.jsonl"), ["a 1"])
    command = [*NUMTOK, *given.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode in (1, 2) and "pipe is neither a file nor a folder, but" in done.stderr
