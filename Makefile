# A fresh clone needs only `make demo` and `make test`.

# The environment's Python, or the first of these that can create one.
ifndef PYTHON
PYTHON := $(shell for python in .venv/bin/python python3.11 python3.12 python3.13 python3; do \
  "$$python" -c 'import ensurepip, sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
    >/dev/null 2>&1 && echo "$$python" && break; done)
endif
ifeq ($(PYTHON),)
$(error Python 3.11, 3.12 or 3.13 with the module venv was not found; install one, or set PYTHON=path)
endif
BIN := .venv/bin
# The scripts in benchmarks/ that compare with other libraries and need no files.
BENCHMARKS := training_step tokenizing inference
# The versions for the Python of the environment, or of the one to be created.
LOCK := requirements/python-$(shell $(firstword $(wildcard $(BIN)/python) $(PYTHON)) -c \
  'import sys; print("%d.%d" % sys.version_info[:2])').txt
ifeq ($(wildcard $(LOCK)),)
$(error There is no $(LOCK), only versions for Python 3.11, 3.12 and 3.13; remove .venv if it \
  has another Python, or set PYTHON=path)
endif
# Owner and name of the repository, for the links to Colab.
ADDRESS = $(shell sed -n 's,^repository = "https://github.com/\(.*\)"$$,\1,p' pyproject.toml)
# Number of test processes. The tests of a file share a process and its trained fixtures.
WORKERS ?= 2
PYTEST := $(BIN)/pytest --quiet --numprocesses=$(WORKERS) --dist=loadfile --durations=40
# Slow tests that run first, and the others in new processes: a process keeps the memory of
# every function that TensorFlow compiled.
FIRST_TESTS := tests/checkpoints tests/modeling tests/serving tests/tasks
OTHER_TESTS := tests $(FIRST_TESTS:%=--ignore=%)

.PHONY: help demo test test-slow test-long test-beam lint format notebooks docs dist lock benchmark

help:
	@echo "make demo       pretraining, fine-tuning, serving, with the package's model and text;"
	@echo "                DEMO_CORPUS=path takes your own text"
	@echo "make test       lint and the tests of recorded numbers, contracts, tools and killed"
	@echo "                runs, in two processes; WORKERS=4: in four"
	@echo "make test-slow  the other tests that take seconds each"
	@echo "make test-long  tests that take minutes or gigabytes each"
	@echo "make test-beam  the tests of Apache Beam's runners, in .venv-beam"
	@echo "make benchmark  compare the speed with other libraries, into"
	@echo "                benchmarks/RESULTS.md: $(BENCHMARKS)"
	@echo "make benchmark-squad ARGS=--help"
	@echo "                what a script in benchmarks/ needs; likewise the others"
	@echo "make lint       ruff (rules and format) and mypy (types)"
	@echo "make format     format the code and fix what ruff can fix"
	@echo "make notebooks  build colab/*.ipynb from colab/*.py"
	@echo "make docs       build the documentation in build/docs and check its links"
	@echo "make dist       build and check the wheel and the source archive in dist/"
	@echo "make lock       update requirements/python-*.txt; LOCK_FLAGS=--upgrade: to new versions"

demo: .venv/installed
	$(BIN)/python tools/run_demo.py $(if $(DEMO_CORPUS),--corpus_file="$(DEMO_CORPUS)")

test: lint
	$(PYTEST)

test-slow: .venv/installed
	$(PYTEST) -m "slow and not long" $(FIRST_TESTS)
	$(PYTEST) -m "slow and not long" $(OTHER_TESTS)

test-long: .venv/installed
	$(PYTEST) -m long

test-beam: .venv-beam/installed
	.venv-beam/bin/pytest --quiet tests/data/test_beam.py

benchmark: $(BENCHMARKS:%=benchmark-%)

# One at a time, even with --jobs.
.NOTPARALLEL: benchmark
benchmark-inference: .venv/openvino
benchmark-%: .venv/installed .venv-peers/installed
	$(BIN)/python benchmarks/$*.py $(ARGS)

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

notebooks: .venv/installed
	perl -pi -e 's,(colab.research.google.com/github/)[^/]+/[^/]+/,$$1$(ADDRESS)/,' colab/*.py
	cd colab && for source in *.py; do \
	  ../$(BIN)/jupytext --quiet --update --to ipynb --output "$${source%.py}.ipynb" "$$source"; \
	done
	@case "$(ADDRESS)" in OWNER/*) echo "The links to Colab name OWNER: set repository in pyproject.toml," \
	  "and run make notebooks again before you publish them";; esac

docs: .venv/installed
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet docs build/docs
	@echo "open build/docs/index.html, or, because the search needs a server,"
	@echo "run $(BIN)/python -m http.server --directory build/docs"

dist:
	rm -rf build dist
	$(PYTHON) -m venv build/dist
	build/dist/bin/pip install --quiet build twine
	build/dist/bin/python -m build --outdir dist
	build/dist/bin/twine check --strict dist/*

# Keeps the versions that are in the files unless a requirement changed.
lock:
	$(PYTHON) -m venv build/lock
	build/lock/bin/pip install --quiet uv
	for version in 3.11 3.12 3.13; do \
	  build/lock/bin/uv pip compile setup.py --extra dev --extra docs --universal --quiet \
	    --no-annotate --python-version $$version --custom-compile-command "make lock" \
	    $(LOCK_FLAGS) --output-file requirements/python-$$version.txt || exit 1; \
	done

# The environment, updated only if the lock file changed.
.venv/locked: $(LOCK)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --requirement $(LOCK)
	touch $@

# A new tool adds a command, so the package is installed again.
.venv/installed: .venv/locked setup.py $(wildcard tools/*.py)
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# The version that is measured as a peer.
.venv/openvino: .venv/installed requirements/peers.txt
	$(BIN)/python -m pip install --quiet $(shell grep '^openvino==' requirements/peers.txt)
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
