# `make` alone lists the recipes. CI calls the same ones.
.DEFAULT_GOAL := help
.PHONY: dist release-check package docs help setup setup-test build demo test test-core python differential chaos fuzz simulate bench pictures lint tidy fmt clean

help: ## List the recipes
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

setup: ## Check what building needs, and fetch the embedded ClickHouse and DuckDB's library
	@scripts/setup build

setup-test: ## The same for the tests: Python, Node, Java, Go, PHP, promtool, Chromium
	@scripts/setup test

build: setup ## Build target/release/windrow
	cargo build --release --bin windrow

dist: setup ## Build target/dist/windrow, optimised as a whole, for this machine: what is measured
	. ./scripts/reproducible && cargo build --locked --profile dist --bin windrow

release-check: setup-test ## Check all that a release is: packages, their tests, licences, and that two builds make the same bytes
	@scripts/release-check

package: setup ## Build the program for glibc 2.28 and newer, and make the packages in dist/; KIND="tar deb" some of them
	@scripts/package $(KIND)

demo: build ## 200 writers insert one row at a time; BACKEND=duckdb, DEMO_SECONDS=20 ends by itself, ARGS="..." is passed on
	@target/release/windrow demo $(if $(BACKEND),--backend $(if $(filter duckdb,$(BACKEND)),duckdb::memory:,$(BACKEND))) \
	  $(if $(DEMO_SECONDS),--for $(DEMO_SECONDS)) $(ARGS)

test: setup-test ## Run every test: tidy, Rust, whole system with the real ClickHouse and the real clients, Python package
	@scripts/test

test-core: ## What a change in core/ needs first: tidy, its Rust tests, ClickHouse's protocols through a gateway without optional parts but the embedded ClickHouse
	@scripts/setup core
	@CORE=1 scripts/test

python: setup-test ## Build the Python package and install it into target/python-env
	@scripts/python-package

differential: build setup-test ## Compare formats and types with ClickHouse: CASES=70 is 10,500 odd cases per format, SEED=n others, FORMAT=CSV one
	@WINDROW_DIFFERENTIAL_CASES=$(or $(CASES),10) $(if $(SEED),WINDROW_DIFFERENTIAL_SEED=$(SEED)) \
	  .venv/bin/python -m pytest tests/differential -n 2 -q -rP $(if $(FORMAT),-k "$(FORMAT)")

chaos: build setup-test ## Kill gateway, database, broker and writers under load, ROUNDS=100 times (pipelines 30) from SEED=1 on, and count everything; BACKEND=duckdb
	@WINDROW_CHAOS_ROUNDS=$(or $(ROUNDS),100) WINDROW_CHAOS_SEED=$(or $(SEED),1) WINDROW_CHAOS_AWAY_SECONDS=120 \
	  WINDROW_CHAOS_BACKEND=$(BACKEND) .venv/bin/python -m pytest $(if $(BACKEND),tests/chaos/test_kill.py,tests/chaos) -q -s
	@WINDROW_CHAOS_ROUNDS=$(or $(ROUNDS),30) WINDROW_CHAOS_SEED=$(or $(SEED),1) \
	  .venv/bin/python -m pytest tests/kafka/test_kill.py $(if $(filter duckdb,$(BACKEND)),-k duckdb) -q -s
	@package=$$(scripts/python-package) && WINDROW_CHAOS_ROUNDS=$(or $(ROUNDS),100) WINDROW_CHAOS_SEED=$(or $(SEED),1) \
	  PYTHONPATH=$$package .venv/bin/python -m pytest tests/go/test_go_killed.py tests/go/test_go_and_python.py \
	  python/tests/writer/test_killed.py -q -s

fuzz: ## Run each fuzz target for FUZZ_SECONDS=30; TARGET=values one alone
	@fuzz/run $(or $(FUZZ_SECONDS),30) $(TARGET)

simulate: ## Crashes and faults under seeds: SEEDS=100000 runs many, SEED=n one, and prints what happens
	@WINDROW_SIMULATION_SEED=$(SEED) WINDROW_SIMULATION_SEEDS=$(SEEDS) \
	  cargo test --release -p windrow-engine --lib simulation::runs::thousands_of_seeds -- --test-threads=1 --nocapture

bench: setup-test ## Measure, and write docs/benchmarks.md; ARGS="inserts --seconds 5" for a part alone
	@bench/run $(ARGS)

pictures: build setup-test ## Make the pictures of the dashboard and of the demo in docs/pictures
	@PYTHONPATH=tests .venv/bin/python -m dashboard.pictures

docs: ## Build the documentation as a site in target/site, and check its links
	@scripts/docs

lint: ## Formatting, clippy, that the fuzz targets compile, licences and known weaknesses of dependencies, tidy
	cargo fmt --all --check
	cargo clippy --release --workspace --all-targets -- -D warnings
	cargo clippy --release --bin windrow --no-default-features -- -D warnings
	cargo clippy --release --bin windrow --no-default-features --features kafka,otlp -- -D warnings
	cargo clippy --release --bin windrow --no-default-features --features embedded -- -D warnings
	cargo clippy --release --bin windrow --no-default-features --features sql -- -D warnings
	cargo check --manifest-path fuzz/Cargo.toml
	@scripts/deny
	@scripts/tidy

tidy: ## The project's own rules, checked on the files
	@scripts/tidy

fmt: ## Format the Rust code
	cargo fmt --all

clean: ## Remove what was built and fetched
	rm -rf target dist .venv .cache embedded/node_modules duckdb/node_modules kafka/jars*
