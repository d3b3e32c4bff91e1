PYTHON ?= python3
JOBS ?= auto

BIN := .venv/bin
READY := .venv/.ready

.PHONY: run test hosts lint docs bench clean

run: $(READY)
	$(BIN)/python examples/crystal.py

test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS)

# Programs that call packages: what is absent is installed where it can be, else skipped by name.
hosts: $(READY)
	tests/hosts/install.sh
	$(MAKE) .hosts/dolfinx/.ready
	$(BIN)/python -m pip install --quiet -c constraints.txt torch-fem
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m '' -rs tests/hosts

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

# FEniCSx is Debian's, for the system's Python and NumPy 1; Ingot is put beside it.
.hosts/dolfinx/.ready:
	mkdir -p $(@D)
	if /usr/bin/python3 -c 'import dolfinx' 2> /dev/null; then \
	  /usr/bin/python3 -m venv --system-site-packages $(@D) && \
	  $(@D)/bin/python -m pip install --quiet 'numpy<2' matplotlib -e . && touch $@; \
	fi

clean:
	rm -rf build dist docs/reference aoti failed examples/out .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[plot,fields,scale,xarray,docs,editor,dev]' felupe scikit-fem
	touch $@
