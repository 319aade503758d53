# A fresh clone needs only `make demo` and `make test`.

PYTHON ?= python3.11
BIN := .venv/bin
# Comparisons with other libraries; each is a script in benchmarks/.
BENCHMARKS := training_step tokenizing
# Number of test processes. The tests of a file share a process and its trained fixtures.
WORKERS ?= 2
PYTEST := $(BIN)/pytest --quiet --numprocesses=$(WORKERS) --dist=loadfile

.PHONY: help demo test test-slow test-beam lint format notebooks lock benchmark

help:
	@echo "make demo       raw text to a served answer, on the text of the package;"
	@echo "                DEMO_CORPUS=path takes your own text"
	@echo "make test       lint and all fast tests, in two processes; WORKERS=4: in four"
	@echo "make test-slow  all tests, also those that take minutes or gigabytes"
	@echo "make test-beam  the tests of Apache Beam's runners, in .venv-beam"
	@echo "make benchmark  compare the speed with other libraries, into"
	@echo "                benchmarks/RESULTS.md; benchmark-training_step runs one"
	@echo "make lint       ruff (rules and format) and mypy (types)"
	@echo "make format     format the code and fix what ruff can fix"
	@echo "make notebooks  build colab/*.ipynb from colab/*.py"
	@echo "make lock       update requirements/default.txt"

demo: .venv/installed
	$(BIN)/python tools/run_demo.py $(if $(DEMO_CORPUS),--corpus_file="$(DEMO_CORPUS)")

test: lint
	$(PYTEST)

test-slow: lint
	$(PYTEST) --run-slow

test-beam: .venv-beam/installed
	.venv-beam/bin/pytest --quiet tests/data/parallel/test_beam.py

benchmark: $(BENCHMARKS:%=benchmark-%)

# One at a time, even with --jobs.
.NOTPARALLEL: benchmark
$(BENCHMARKS:%=benchmark-%): benchmark-%: .venv/installed .venv-peers/installed
	$(BIN)/python benchmarks/$*.py

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

notebooks: .venv/installed
	cd colab && for source in *.py; do \
	  ../$(BIN)/jupytext --quiet --update --to ipynb --output "$${source%.py}.ipynb" "$$source"; \
	done

lock:
	rm -rf build/lock
	$(PYTHON) -m venv build/lock
	build/lock/bin/pip install --quiet '.[dev]' setuptools wheel
	sed -n '/^#/p' requirements/default.txt > build/lock/default.txt
	build/lock/bin/pip freeze --all --exclude pip --exclude bert_tf >> build/lock/default.txt
	mv build/lock/default.txt requirements/default.txt

# The environment, updated only if the lock file changed.
.venv/locked: requirements/default.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --requirement requirements/default.txt
	touch $@

# A new tool adds a command, so the package is installed again.
.venv/installed: .venv/locked setup.py $(wildcard tools/*.py)
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# Beam needs a different version of protobuf from the one in the lock file.
.venv-beam/installed: requirements/beam.txt setup.py
	test -x .venv-beam/bin/python || $(PYTHON) -m venv .venv-beam
	.venv-beam/bin/python -m pip install --quiet --requirement requirements/beam.txt
	.venv-beam/bin/python -m pip install --quiet --no-deps --editable .
	touch $@

# The libraries that benchmarks compare with. PyTorch stays out of TensorFlow's process.
.venv-peers/installed: requirements/peers.txt
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --requirement requirements/peers.txt
	touch $@
