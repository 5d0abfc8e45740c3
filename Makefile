# Every target sets up what it needs. `make run` and `make test` are all a fresh
# machine with Go needs (and npm, for the MCP peers of the tests).
GOLANGCI_VERSION := v2.15.0
# A count, not a time: now and then go test -fuzz reports the end of its time as
# a failure ("context deadline exceeded").
FUZZTIME ?= 400000x
FUZZTIME_SLOW ?= 60000x
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS  := -s -w -X main.version=0.1.0-$(VERSION)
# Where make install puts yaya: PREFIX/bin. PREFIX=/usr/local is for all users.
PREFIX   ?= $(HOME)/.local
TOOLS    := $(CURDIR)/.cache/bin
PEERS    := internal/peers/npm
PYPEERS  := internal/peers/py
LINTER   := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
FOLDERS  := auth cmd feature gateway internal kernel mcpbridge plugins
export GOFLAGS += -buildvcs=false

.PHONY: ids run build install test setup downloads unit race scale lint fuzz bench fmt fmt-check vet peers chromium bwrap screens clean

run: build ## build and start the gateway with its defaults
	bin/yaya serve

build: ## into bin/yaya; what has not changed is not compiled again
	@test -e bin/yaya || echo "Building yaya for the first time: go downloads and compiles all that it is made of, which takes some minutes and says nothing."
	go build -trimpath -ldflags '$(LDFLAGS)' -o bin/yaya ./cmd/yaya

install: build ## put yaya into PREFIX/bin ($(HOME)/.local/bin)
	install -d "$(DESTDIR)$(PREFIX)/bin"
	install -m 755 bin/yaya "$(DESTDIR)$(PREFIX)/bin/yaya"
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) echo "Installed. Start it with: yaya serve";; \
	  *) echo "Installed. $(PREFIX)/bin is not in your PATH: add it, or start yaya with $(PREFIX)/bin/yaya serve";; esac

# Most of race goes to the tests of the binary, cmd/yaya, which say nothing until
# they end.
STEPS    := setup fmt-check vet ids lint race scale fuzz
test: ## the whole suite
	@begun=$$(date +%s); for step in $(STEPS); do \
	  echo "$$step …"; since=$$(date +%s); \
	  $(MAKE) -j1 --no-print-directory $$step || { echo "$$step: failed after $$(($$(date +%s) - since)) s"; exit 1; }; \
	  echo "$$step: $$(($$(date +%s) - since)) s"; \
	done; echo "test: $$(($$(date +%s) - begun)) s in all"

# The linter is published as source and as releases on GitHub alone: on a fresh
# machine it is compiled, while npm and apt download.
setup:
	$(MAKE) -j2 $(LINTER) downloads

downloads:
	$(MAKE) -j1 peers chromium

ids: ## every requirement that is implemented is quoted by a test
	go run ./internal/ids

vet:
	go vet ./...
	GOOS=darwin go vet ./...

fmt:
	gofmt -w $(FOLDERS)

fmt-check:
	@out=$$(gofmt -l $(FOLDERS)); test -z "$$out" || { echo "gofmt would change: $$out"; exit 1; }

unit: ## quick: without the race detector, without peers
	go test -short ./...

race: peers chromium bwrap
	YAYA_PEERS_REQUIRED=1 go test -race -timeout 45m ./...

# The tests of scale with all that they promise: race runs them with less.
scale:
	go test -count 1 -run '^(TestTwoThousandClients|TestManyReaders|TestManyCatchUp)$$' ./gateway/wire ./gateway/sessions

# The real MCP servers and clients that the tests talk to, and a Node for them.
peers: $(PEERS)/node_modules/.package-lock.json $(PYPEERS)/.venv/installed

$(PEERS)/node_modules/.package-lock.json: $(PEERS)/package.json $(PEERS)/package-lock.json
	@command -v npm >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -q && apt-get install -qy npm; \
	  else echo "npm is needed for the MCP peers of the tests: install Node.js with npm"; exit 1; fi; }
	cd $(PEERS) && npm ci --no-audit --no-fund
	@touch $@

# requirements.txt is made of requirements.in, for every platform, by
#   uv pip compile --universal --python-version 3.11 --generate-hashes --no-header requirements.in -o requirements.txt
$(PYPEERS)/.venv/installed: $(PYPEERS)/requirements.txt
	@python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -q && apt-get install -qy python3-venv; \
	  else echo "Python 3.11 or later with venv is needed for the MCP peers of the tests: install it"; exit 1; fi; }
	rm -rf $(@D)
	python3 -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

# The browser that the page is tested in; YAYA_CHROMIUM names another one.
chromium:
	@command -v $${YAYA_CHROMIUM:-chromium} chromium-browser google-chrome >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -q && apt-get install -qy chromium; \
	  else echo "Chromium is needed for the tests of the page: install it, or name a Chrome in YAYA_CHROMIUM"; exit 1; fi; }

# One of the sandbox's back ends. Its tests are skipped without it.
bwrap:
	@[ "$$(uname)" != Linux ] || command -v bwrap >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -q && apt-get install -qy bubblewrap; \
	  else echo "Without bubblewrap the tests of the sandbox's back end bwrap are skipped"; fi; }

$(LINTER):
	@mkdir -p $(TOOLS)
	@echo "Compiling golangci-lint $(GOLANGCI_VERSION), once: there is no package of it. It takes some minutes."
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(TOOLS)/golangci-lint $@

lint: $(LINTER)
	$(LINTER) run ./...

# Every parser of what comes from outside, FUZZTIME inputs each; fewer where each
# takes long.
fuzz:
	go test ./internal/jsonrpc -run '^$$' -fuzz '^FuzzEnvelope$$' -fuzztime $(FUZZTIME)
	go test ./internal/jsonrpc -run '^$$' -fuzz '^FuzzGlimpse$$' -fuzztime $(FUZZTIME)
	go test ./internal/sse -run '^$$' -fuzz '^FuzzReader$$' -fuzztime $(FUZZTIME)
	go test ./mcpbridge/servers -run '^$$' -fuzz '^FuzzParse$$' -fuzztime $(FUZZTIME)
	go test ./gateway/wire/codec -run '^$$' -fuzz '^FuzzDecodeFrame$$' -fuzztime $(FUZZTIME_SLOW)
	go test ./internal/patch -run '^$$' -fuzz '^FuzzParse$$' -fuzztime $(FUZZTIME_SLOW)
	go test ./internal/journal -run '^$$' -fuzz '^FuzzOpen$$' -fuzztime $(FUZZTIME_SLOW)
	go test ./internal/masked -run '^$$' -fuzz '^FuzzSpellings$$' -fuzztime $(FUZZTIME_SLOW)
	go test ./mcpbridge/upstream -run '^$$' -fuzz '^FuzzDispatch$$' -fuzztime $(FUZZTIME_SLOW)
	go test ./mcpbridge/upstream -run '^$$' -fuzz '^FuzzReadLines$$' -fuzztime $(FUZZTIME)

screens: peers chromium ## a picture of every view of the page, in bin/screens
	YAYA_SCREENSHOTS=$(CURDIR)/bin/screens go test -count 1 -run 'TestPageLooks|TestPageRemote' ./cmd/yaya

bench: build ## the relay beside a direct connection, start-up, and the kernel
	go build -o bin/bench ./internal/bench
	bin/bench -yaya bin/yaya
	go test -run '^$$' -bench Fanout -benchtime 640x ./gateway/wire
	go test -run '^$$' -bench Handshake ./gateway/wire
	go test -run '^$$' -bench 'Readers|FirstDelta|List' ./gateway/sessions
	go test -run '^$$' -bench . ./kernel/bus ./internal/journal ./kernel/session ./kernel

clean:
	rm -rf bin .cache $(PEERS)/node_modules $(PYPEERS)/.venv
