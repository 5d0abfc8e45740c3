# Every target sets up what it needs. `make run` and `make test` are all a fresh
# machine with Go needs (and npm, for the MCP peers of the tests).
GOLANGCI_VERSION := v2.15.0
HELM_VERSION     := v3.19.5
# A count, not a time: now and then go test -fuzz reports the end of its time as
# a failure ("context deadline exceeded").
FUZZTIME ?= 300000x
FUZZTIME_SLOW ?= 45000x
NFPM_VERSION     := v2.45.2
COMMIT   := $(shell git describe --tags --always --dirty 2>/dev/null)
DIGEST   := $(shell git log -1 --format=%H 2>/dev/null)
AT       := $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
STRIP    := -s -w
STAMP    := github.com/yaya-ai/yaya/daemon
LDFLAGS  := $(STRIP) -X $(STAMP).described=$(COMMIT) -X $(STAMP).commit=$(DIGEST) -X $(STAMP).committed=$(AT)
# gRPC, which comes with the OTLP exporter, has pages of its own for debugging, whose
# templates would keep all methods of all types in the program.
TAGS     := grpcnotrace
# Where make install puts yaya: PREFIX/bin. PREFIX=/usr/local is for all users.
PREFIX   ?= $(HOME)/.local
# The folder that packages are made in, as a part of the path of every file.
DESTDIR  ?=
AT_PREFIX = $(DESTDIR)$(PREFIX)
SHARED   := share/man/man1/yaya.1 share/bash-completion/completions/yaya share/zsh/site-functions/_yaya share/fish/vendor_completions.d/yaya.fish share/doc/yaya/LICENSE
TOOLS    := $(CURDIR)/.cache/bin
PEERS    := internal/peers/npm
PYPEERS  := internal/peers/py
LINTER   := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
FOLDERS  := auth cmd control daemon examples feature gateway hooks internal kernel mcpbridge plugins sdk
NODE     := $(CURDIR)/$(PEERS)/node_modules/.bin/node
PRETTIER := $(CURDIR)/$(PEERS)/node_modules/prettier/bin/prettier.cjs
export GOFLAGS += -buildvcs=false

.PHONY: windows packagers help ids figures run build install uninstall release-snapshot release-again image test setup downloads unit race scale lint fuzz bench data soak cluster-bench deploy-check site fmt fmt-check vet peers chromium bwrap systemd types page screens clean bench-peers bench-session eval slow-path release-journey

run: build ## build and start the gateway with its defaults
	bin/yaya serve

help: ## print the targets
	@awk -F ':[^=]*## ' '/^[a-z][a-z-]*:[^=]*## / { printf "%-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/yaya; compiles only changed packages
	@sh internal/release/build.sh bin/yaya -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)' ./cmd/yaya

install: build ## put yaya into PREFIX/bin, its manual page and completions into PREFIX/share (PREFIX is ~/.local by default)
	install -d $(foreach f,bin/yaya $(SHARED),"$(AT_PREFIX)/$(dir $(f))")
	install -m 755 bin/yaya "$(AT_PREFIX)/bin/yaya"
	bin/yaya man >"$(AT_PREFIX)/$(word 1,$(SHARED))"
	bin/yaya completion bash >"$(AT_PREFIX)/$(word 2,$(SHARED))"
	bin/yaya completion zsh >"$(AT_PREFIX)/$(word 3,$(SHARED))"
	bin/yaya completion fish >"$(AT_PREFIX)/$(word 4,$(SHARED))"
	install -m 644 LICENSE "$(AT_PREFIX)/$(word 5,$(SHARED))"
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) echo "Installed. Start it with: yaya serve";; \
	  *) echo "Installed. $(PREFIX)/bin is not in your PATH: add it, or start yaya with $(PREFIX)/bin/yaya serve";; esac

uninstall: ## remove what make install put into PREFIX; settings and data stay
	rm -f "$(AT_PREFIX)/bin/yaya" $(foreach f,$(SHARED),"$(AT_PREFIX)/$(f)")

# Most of race goes to the tests of the binary, cmd/yaya, which say nothing until
# they end.
STEPS    := setup fmt-check vet ids lint race slow-path scale fuzz
test: ## run the whole suite; installs what it needs
	@begun=$$(date +%s); for step in $(STEPS); do \
	  echo "$$step …"; since=$$(date +%s); \
	  $(MAKE) -j1 --no-print-directory $$step || { echo "$$step: failed after $$(($$(date +%s) - since)) s"; exit 1; }; \
	  echo "$$step: $$(($$(date +%s) - since)) s"; \
	done; echo "test: $$(($$(date +%s) - begun)) s in all"

# The linter is published as source and as releases on GitHub alone: on a fresh
# machine it is compiled, while npm and apt download.
setup: ## install what make test needs: the linter and the peers
	$(MAKE) -j2 $(LINTER) downloads

downloads: ## do the part of setup that downloads
	$(MAKE) -j1 peers chromium bwrap systemd

ids: ## check docs/REQUIREMENTS.md: tests quote every requirement, and it has every id
	go run ./internal/ids

figures: ## print the figures of the code's structure; fails beyond a limit
	go run ./internal/figures

site: ## make the documentation site in .cache/site; fails if a link leads nowhere
	go run ./internal/site -out .cache/site

vet: ## run go vet for Linux, macOS and Windows
	go vet ./...
	GOOS=darwin go vet ./...
	GOOS=windows go vet ./...

windows: ## build for Windows; with wine (10 or later) on PATH, run the tests of what differs there
	GOOS=windows go build ./...
	@if command -v wine > /dev/null; then umask 077; GOOS=windows go test -exec wine ./internal/hostfile ./internal/proc; \
	  else echo "Nothing has run: wine is not on PATH"; fi

# The page is formatted by prettier, which is one of the peers.
fmt: peers ## format the Go code, and the page
	gofmt -w $(FOLDERS)
	cd gateway/dashboard && $(NODE) $(PRETTIER) --log-level warn --write .

fmt-check: ## fail if make fmt would change a file; checks the page only with the peers
	@out=$$(gofmt -l $(FOLDERS)); test -z "$$out" || { echo "gofmt would change: $$out"; exit 1; }
	@if test -e $(PRETTIER); then cd gateway/dashboard && $(NODE) $(PRETTIER) --log-level warn --check .; \
	  else echo "The format of the page is not checked: make peers installs what does"; fi

unit: ## run the tests quickly: without the race detector, the peers and the program as a whole
	go test -short ./...

# A program with the race detector sleeps for a second before it exits, which the
# tests that run yaya as a program would wait for thousands of times.
race: peers chromium bwrap systemd ## run all tests with the race detector; no peer may be missing
	GORACE=atexit_sleep_ms=10 YAYA_PEERS_REQUIRED=1 go test -race -timeout 75m ./...

# The other tests use the fast path, where it applies.
slow-path: peers ## run the tests of the HTTP server without its fast path
	YAYA_HTTP__FAST_PATH=false YAYA_PEERS_REQUIRED=1 go test -count 1 ./gateway
	YAYA_HTTP__FAST_PATH=false YAYA_PEERS_REQUIRED=1 go test -count 1 -run '^(TestConformance.*|TestMatrix|TestRestartUnderLoad|TestHangupDuringRestart)$$' ./cmd/yaya

# race runs them with less, or leaves them out. The benchmarks run once, so that none is broken when it
# is needed.
scale: ## run the tests of scale at full size, and the benchmarks once
	go test -count 1 -run '^(TestTwoThousandClients|TestManyReaders|TestManyCatchUp)$$' ./gateway/wire ./gateway/sessions
	go test -count 1 ./internal/clusterbench
	go test -count 1 -run '^TestWholeResults$$' ./cmd/yaya
	go test -count 1 -run '^TestGoTestOfAgents$$' ./plugins/tool_shell
	go test -run '^$$' -bench 'Handshake|List|FirstDelta|Publish|Append|Turn' -benchtime 1x ./gateway/wire ./gateway/sessions ./kernel/bus ./internal/journal ./kernel

# The real MCP servers and clients that the tests talk to, and a Node for them.
peers: $(PEERS)/node_modules/.package-lock.json $(PYPEERS)/.venv/installed ## install the real MCP servers and clients that the tests talk to

$(PEERS)/node_modules/.package-lock.json: $(PEERS)/package.json $(PEERS)/package-lock.json
	@command -v npm >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -q && apt-get install -qy npm; \
	  else echo "npm is needed for the MCP peers of the tests: install Node.js with npm"; exit 1; fi; }
	cd $(PEERS) && npm ci --no-audit --no-fund
	@touch $@

# requirements.txt names every package, so pip need not look for what they need:
# asked to, it takes the newest release of a package that another one wants with
# an extra, and fails because that release has no hash here. It is made of
# requirements.in, for every platform, by
#   uv pip compile --universal --python-version 3.11 --generate-hashes --no-header requirements.in -o requirements.txt
$(PYPEERS)/.venv/installed: $(PYPEERS)/requirements.txt
	@python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -q && apt-get install -qy python3-venv; \
	  else echo "Python 3.11 or later with venv is needed for the MCP peers of the tests: install it"; exit 1; fi; }
	rm -rf $(@D)
	python3 -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $<
	$(@D)/bin/pip check --disable-pip-version-check
	@touch $@

# The browser that the page is tested in; YAYA_CHROMIUM names another one.
chromium: ## install the browser that the page is tested in
	@command -v $${YAYA_CHROMIUM:-chromium} chromium-browser google-chrome >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -q && apt-get install -qy chromium; \
	  else echo "Chromium is needed for the tests of the page: install it, or name a Chrome in YAYA_CHROMIUM"; exit 1; fi; }

# One of the sandbox's back ends. Its tests are skipped without it.
bwrap: ## install one of the back ends of the sandbox
	@[ "$$(uname)" != Linux ] || command -v bwrap >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -q && apt-get install -qy bubblewrap; \
	  else echo "Without bubblewrap the tests of the sandbox's back end bwrap are skipped"; fi; }

# systemd-analyze, which checks the units. systemd itself need not run.
systemd: ## install what checks the units of the service
	@[ "$$(uname)" != Linux ] || command -v systemd-analyze >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -q && apt-get install -qy --no-install-recommends systemd; \
	  else echo "Without systemd-analyze the tests of the units are skipped"; fi; }

$(LINTER):
	@mkdir -p $(TOOLS)
	@echo "Compiling golangci-lint $(GOLANGCI_VERSION), once: there is no package of it. It takes some minutes."
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(TOOLS)/golangci-lint $@

lint: $(LINTER) ## run golangci-lint
	$(LINTER) run ./...

# Every parser of what comes from outside, FUZZTIME inputs each; fewer where each
# takes long.
fuzz: ## fuzz every parser of outside input, FUZZTIME inputs each
	go test ./internal/jsonrpc -run '^$$' -fuzz '^FuzzEnvelope$$' -fuzztime $(FUZZTIME)
	go test ./internal/jsonrpc -run '^$$' -fuzz '^FuzzGlimpse$$' -fuzztime $(FUZZTIME)
	go test ./internal/sse -run '^$$' -fuzz '^FuzzReader$$' -fuzztime $(FUZZTIME)
	go test ./internal/fastpath -run '^$$' -fuzz '^FuzzRoads$$' -fuzztime $(FUZZTIME_SLOW)
	go test ./mcpbridge/servers -run '^$$' -fuzz '^FuzzParse$$' -fuzztime $(FUZZTIME)
	go test ./gateway/wire/codec -run '^$$' -fuzz '^FuzzDecodeFrame$$' -fuzztime $(FUZZTIME_SLOW)
	go test ./internal/patch -run '^$$' -fuzz '^FuzzParse$$' -fuzztime $(FUZZTIME_SLOW)
	go test ./internal/journal -run '^$$' -fuzz '^FuzzOpen$$' -fuzztime $(FUZZTIME_SLOW)
	go test ./internal/agentskill -run '^$$' -fuzz '^FuzzParse$$' -fuzztime $(FUZZTIME_SLOW)
	go test ./internal/agentpackage -run '^$$' -fuzz '^FuzzRead$$' -fuzztime $(FUZZTIME_SLOW)
	go test ./internal/hookconf -run '^$$' -fuzz '^FuzzHooks$$' -fuzztime $(FUZZTIME_SLOW)
	go test ./internal/mounts -run '^$$' -fuzz '^FuzzParse$$' -fuzztime $(FUZZTIME)
	go test ./internal/masked -run '^$$' -fuzz '^FuzzSpellings$$' -fuzztime $(FUZZTIME_SLOW)
	go test ./internal/toolsearch -run '^$$' -fuzz '^FuzzSearch$$' -fuzztime $(FUZZTIME_SLOW)
	go test ./mcpbridge/upstream -run '^$$' -fuzz '^FuzzDispatch$$' -fuzztime $(FUZZTIME_SLOW)
	go test ./mcpbridge/upstream -run '^$$' -fuzz '^FuzzReadLines$$' -fuzztime $(FUZZTIME)
	go test ./mcpbridge/upstream -run '^$$' -fuzz '^FuzzPlainAnswer$$' -fuzztime $(FUZZTIME)

page: ## bundle the page into what is served
	go run ./internal/pagebundle

types: peers ## generate the page's types from the OpenAPI documents
	go test -count 1 -run '^TestPageTypesAreFresh$$' ./cmd/yaya -update-docs

screens: peers chromium ## take a picture of every view of the page, into bin/screens
	YAYA_SCREENSHOTS=$(CURDIR)/bin/screens go test -count 1 -run 'TestPageLooks|TestPageRemote' ./cmd/yaya

bench: build ## measure the relay beside a direct connection, start-up and the kernel
	go build -o bin/bench ./internal/bench
	bin/bench -yaya bin/yaya -compare internal/bench/baseline.json
	go test -run '^$$' -bench Fanout -benchtime 640x ./gateway/wire
	go test -run '^$$' -bench Handshake ./gateway/wire
	go test -run '^$$' -bench 'Readers|FirstDelta|List' ./gateway/sessions
	go test -run '^$$' -bench . ./kernel/bus ./internal/journal ./kernel/session ./kernel

bench-session: ## have a session of 400 calls of a model in a window of 32k tokens, and show its times
	go test -count 1 -v -run '^TestLongSession$$' ./cmd/yaya

# EVAL chooses a real model, whose key is in the environment:
# EVAL="-plugin llm-anthropic -model claude-sonnet-4-5".
eval: build peers ## have an agent solve small tasks in repositories, and check what it did; the model is scripted without EVAL
	go build -o bin/eval ./internal/eval
	PATH="$(dir $(NODE)):$$PATH" bin/eval -yaya bin/yaya -json bin/eval.json $(EVAL)

# It downloads the peers once, into .cache/peers-bench, and takes a quarter of an
# hour. PEERBENCH passes flags: PEERBENCH="-only FastMCP -rounds 1".
bench-peers: build ## measure other gateways beside yaya, and write docs/PEERS.md
	go build -o bin/peerbench ./internal/peerbench
	bin/peerbench -yaya bin/yaya -cache .cache/peers-bench -write docs/PEERS.md $(PEERBENCH)

# On a quiet machine: it takes an hour.
data: ## run the tests of data directories at full size
	YAYA_TEST_SESSIONS=100000 go test -count 1 -v -timeout 20m -run '^TestHundredThousandSessions$$' ./cmd/yaya
	YAYA_TEST_CHANGES=10000000 go test -count 1 -v -timeout 60m -run '^TestTenMillionChanges$$' ./daemon
	go test -run '^$$' -bench Recall -benchtime 5x -timeout 20m ./plugins/memory_sqlite
	YAYA_TEST_PLACES=100 go test -count 1 -timeout 60m -run '^TestAnyDamage$$' ./daemon

SOAKTIME ?= 20m
soak: build ## run yaya for SOAKTIME under mixed load, with kills, reloads and restarts
	go build -o bin/soak ./internal/soak
	bin/soak -yaya bin/yaya -time $(SOAKTIME)

# As root, for the faults of networks and disks; twenty minutes. CLUSTERBENCH passes flags:
# CLUSTERBENCH="-fault cut-off -rounds 5". Its programs have a package time whose clock can be
# stepped, for which everything is compiled again the first time.
CLOCK := .cache/clock
cluster-bench: ## have nodes and servers of clusters fail under load, and check what clients saw
	go run ./internal/clusterbench overlay $(CLOCK)
	go build -overlay $(CLOCK)/overlay.json -o $(CLOCK)/clusterbench ./internal/clusterbench
	go build -overlay $(CLOCK)/overlay.json -tags $(TAGS) -o $(CLOCK)/yaya ./cmd/yaya
	$(CLOCK)/clusterbench -yaya $(CLOCK)/yaya $(CLUSTERBENCH)

# Not part of make test: it compiles yaya for four systems, which takes minutes each the first
# time. Keys that sign are in the environment (docs/OPERATIONS.md).
NFPM    := $(TOOLS)/nfpm-$(NFPM_VERSION)
RELEASE := bin/release -nfpm $(NFPM) -tags $(TAGS) -ldflags '$(STRIP)'
$(NFPM):
	@mkdir -p $(TOOLS)
	@echo "Compiling nfpm $(NFPM_VERSION), once: it writes deb, rpm and apk."
	GOBIN=$(TOOLS) go install github.com/goreleaser/nfpm/v2/cmd/nfpm@$(NFPM_VERSION)
	@mv $(TOOLS)/nfpm $@

# The roots that packages are installed in for the check need root, dpkg, rpm and a static BusyBox.
packagers: ## install what checks the packages of a release
	@command -v dpkg >/dev/null && command -v rpm >/dev/null && command -v busybox >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -q && apt-get install -qy --no-install-recommends rpm busybox-static; \
	  else echo "The packages are not checked without dpkg, rpm and busybox-static: install them"; exit 1; fi; }

release-snapshot: $(NFPM) packagers ## make every file of a release in bin/dist, and install its packages in empty roots
	go build -o bin/release ./internal/release
	$(RELEASE) make
	$(RELEASE) check

# YAYA_CLAUDE names a Claude Code, which then calls the tool, too, with a model that is a script.
release-journey: ## go the way of somebody new with the files in bin/dist: install, add a server, call a tool
	go build -o bin/release ./internal/release
	$(RELEASE) journey

release-again: $(NFPM) ## build the release's files for this machine again, in another folder, and compare
	go build -o bin/release ./internal/release
	$(RELEASE) -only "linux/$$(go env GOARCH)" again

# Podman writes health checks only in Docker's format:
# BUILDAH_FORMAT=docker make image DOCKER=podman
DOCKER   ?= docker
image: ## build the container image yaya; DOCKER names another program than docker
	$(DOCKER) build -f deploy/Dockerfile --build-arg VERSION=$(COMMIT) --build-arg COMMIT=$(DIGEST) --build-arg COMMITTED=$(AT) -t yaya .

# Not part of make test: it compiles Helm, which takes minutes the first time. A helm that
# was built in this way takes itself to be for an old Kubernetes.
CHART := deploy/helm/yaya
HELM  := go run helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)
deploy-check: ## lint and render the Helm chart; downloads Helm
	$(HELM) lint --strict --kube-version 1.31.0 $(CHART) -f $(CHART)/testdata/values.yaml
	$(HELM) template gate $(CHART) --kube-version 1.31.0 -f $(CHART)/testdata/values.yaml >/dev/null

clean: ## remove everything that make built and downloaded here
	rm -rf bin .cache $(PEERS)/node_modules $(PYPEERS)/.venv
