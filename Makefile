# What people type. `make help` lists it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Where rustup puts cargo: also right after it was installed.
export PATH := $(HOME)/.cargo/bin:$(PATH)
SETUP := crates/xtask/scripts/setup.sh
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Given to what is run: make run ARGS='--listen 127.0.0.1:4100', make bench ARGS=--quick
ARGS ?=

.PHONY: help
help: ## list what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## install what is missing, build, and serve on http://127.0.0.1:4000
	@$(SETUP) run
	@echo "run: building the programs (the first time takes ten minutes and more, see docs/building.md)"
	@cargo build --release --package tokdyno-server --package tokdyno-loadgen --package tokdyno-remote --package tokdyno-xtask
	@$(TARGET)/release/tokdyno-xtask hosts
	@$(TARGET)/release/tokdyno-xtask web
	@exec $(TARGET)/release/tokdyno serve $(ARGS)

.PHONY: test
test: ## install what is missing, and run all checks and tests
	@$(SETUP) test
	@cargo xtask test

.PHONY: dev
dev: ## build quickly, serve, and rebuild what changes
	@$(SETUP) run
	@cargo xtask dev -- $(ARGS)

.PHONY: bench
bench: ## measure how exactly and cheaply the meter measures (ARGS=--quick: C = 512 only)
	@$(SETUP) run
	@cargo build --release --package tokdyno-loadgen --bins --example bare_reader --example parser_speed
	@cargo build --release --package tokdyno-simulator --bin stand-in
	@cargo build --release --package tokdyno-xtask
	@$(TARGET)/release/tokdyno-xtask bench $(ARGS)

.PHONY: web
web: ## build the browser bundle into target/site
	@$(SETUP) run
	@cargo xtask web

.PHONY: hosts
hosts: ## build the programs that are copied to hosts, into target/release/hosts
	@$(SETUP) run
	@cargo xtask hosts

.PHONY: sqlx
sqlx: ## renew .sqlx after a change of a query or a migration
	@$(SETUP) run
	@cargo xtask sqlx-prepare

.PHONY: fmt
fmt: ## format the Rust code
	@cargo fmt --all

.PHONY: lint
lint: ## run clippy for the programs and for the browser
	@cargo xtask test --only lint

.PHONY: setup
setup: ## install what running and testing need, and nothing else
	@$(SETUP) test

.PHONY: clean
clean: ## remove what was built and installed in this folder; data stay
	@cargo clean
	@rm -rf app/node_modules end2end/node_modules end2end/test-results end2end/playwright-report
