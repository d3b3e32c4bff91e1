PYTHON ?= python3
JOBS ?= auto

BIN := .venv/bin
READY := .venv/.ready

.PHONY: run test lint docs bench clean

run: $(READY)
	$(BIN)/python examples/crystal.py

test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS)

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright

docs: $(READY)
	$(BIN)/python -m sphinx -W -q -b html docs build/site

bench: $(READY) .peer/.ready .jax/.ready
	$(BIN)/python -m benchmarks.bench

# NEML2, to be measured beside Ingot: about 5 GB, and torch 2.12.1, which its wheel needs.
.peer/.ready:
	test -x .peer/bin/python || $(PYTHON) -m venv .peer
	.peer/bin/python -m pip install --quiet torch==2.12.1 neml2==3.1.0
	touch $@

# JAX, in which three of the models are written by hand (benchmarks/jax_models.py).
.jax/.ready:
	test -x .jax/bin/python || $(PYTHON) -m venv .jax
	.jax/bin/python -m pip install --quiet jax==0.10.2
	touch $@

clean:
	rm -rf build dist docs/reference aoti failed examples/out .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[plot,fields,scale,xarray,docs,editor,dev]'
	touch $@
