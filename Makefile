# For newcomers: `make demo`, `make planets` and `make test`.
# Each sets up .venv by itself, and can be repeated.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo example planets fish soccer docs gallery test test-slow test-faults coverage lint format package count clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.installed  ## Discover springs and charges from motion alone, in minutes
	$(BIN)/pyg-fnri demo

example: $(VENV)/.installed  ## From a table of trajectories to graphs, laws and a report
	OMP_NUM_THREADS=1 $(BIN)/pyg-fnri infer datasets/example.csv --out runs/example --overwrite
	$(BIN)/python scripts/examples/compare_graphs.py runs/example/edges.csv datasets/example_interactions.csv

planets: $(VENV)/.examples  ## Weigh the planets by how they move, in a minute
fish soccer: $(VENV)/.recordings  ## 100 zebrafish, half a match: does any law hold?
planets fish soccer:
	mkdir -p runs/$@
	cd runs/$@ && ../../$(BIN)/python ../../docs/gallery/$@.py

docs: $(VENV)/.docs  ## Build the documentation site, build/docs/index.html
	$(BIN)/python -m sphinx -W --keep-going -q -c docs . build/docs
	@echo build/docs/index.html

gallery: $(VENV)/.recordings  ## Run the gallery's pages anew, in half an hour
	OMP_NUM_THREADS=1 $(BIN)/python docs/pages.py

# Two workers share the tests; one thread each, or they wait for each other.
test: $(VENV)/.installed  ## Run the tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

test-slow: $(VENV)/.recordings  ## Run the tests that take minutes
	$(BIN)/python -m pytest -m slow

test-faults: $(VENV)/.installed  ## Kill runs and writes, damage files, and see what is left
	OMP_NUM_THREADS=1 FAULTS=results/faults.md $(BIN)/python -m pytest -m "slow or not slow" -s \
	    tests/test_faults.py tests/training/test_faults.py

coverage: $(VENV)/.installed  ## Say which lines the tests run
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --cov --cov-report term:skip-covered

lint: $(VENV)/.installed  ## Check style and types
	$(BIN)/flake8 pyg_fnri scripts benchmarks tests docs
	$(BIN)/isort --check-only pyg_fnri scripts benchmarks tests
	$(BIN)/yapf --diff --recursive pyg_fnri scripts benchmarks tests
	$(BIN)/mypy

format: $(VENV)/.installed  ## Format the code
	$(BIN)/isort pyg_fnri scripts benchmarks tests
	$(BIN)/yapf --in-place --recursive pyg_fnri scripts benchmarks tests

# What users install, where it sees the other packages, but not this folder.
PACKAGE := build/package
package: $(VENV)/.installed  ## Build the package, and run it outside of this folder
	rm -rf dist $(PACKAGE)
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m venv $(PACKAGE)
	$(PACKAGE)/bin/python -m pip install --quiet --no-deps dist/*.whl
	$(BIN)/python -c 'import sys; print(*sys.path[1:], sep="\n")' \
	    > "$$($(PACKAGE)/bin/python -c 'import site; print(*site.getsitepackages())')/others.pth"
	cd $(PACKAGE) && . bin/activate && pyg-fnri --help && \
	    pyg-fnri train @paper.args --option num_systems=16,8,8 --option max_epochs=1 \
	    --batch-size 8 --hidden-channels 8 --threads 1 && \
	    pyg-fnri evaluate --checkpoint runs/paper/best.ckpt && \
	    python -c 'import pyg_fnri; assert "$(PACKAGE)" in pyg_fnri.__file__'

count:  ## Count lines and files against the budget
	$(PYTHON) benchmarks/count.py

clean:  ## Remove the environment, generated data and runs
	rm -rf $(VENV) build dist *.egg-info runs datasets/*/

# Installed once, and again when what is to be installed changes.
$(VENV)/.installed: setup.cfg pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	    { echo "Python 3.10 or newer is needed; name one with make PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints.txt --editable '.[dev]'
	@touch $@

# What examples need besides: the paths of the planets, 27 MB.
$(VENV)/.examples: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints.txt --editable '.[examples]'
	@touch $@

$(VENV)/.recordings: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints.txt --editable '.[recordings]'
	@touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints.txt --editable '.[docs]'
	@touch $@
