# SPDX-License-Identifier: Apache-2.0

GO ?= go

.PHONY: build demo test kube forge flux bench fuzz soak race histories lint generate dist image

build: ## the program, in bin/
	$(GO) build -o bin/fairlead ./cmd/fairlead

demo: build ## the main job on three clusters inside one process
	bin/fairlead demo

kube: ## real API server binaries for the tests, built once
	hack/kube/build.sh

forge: ## a real Gitea for the tests, built once
	hack/forge/build.sh

flux: ## Flux's own controllers for the tests, built once
	hack/flux/build.sh

test: kube forge flux ## every test, on embedded and on real API servers, on a real forge, and beside Flux
	@command -v "$${CHROMIUM:-chromium}" >/dev/null || command -v google-chrome >/dev/null || echo "there is no Chromium: the tests of the page in a browser are left out (apt-get install chromium)"
	$(GO) vet ./...
	FAIRLEAD_REAL=1 $(GO) test -timeout 20m ./...

bench: kube ## ratios within one run
	FAIRLEAD_REAL=1 $(GO) test -p 1 -run '^$$' -bench . -benchtime 1x -timeout 30m ./...

FUZZTIME ?= 1m

fuzz: ## every fuzz target for a minute each
	@grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z]*\).*/\1/p' $$file); do \
			echo "$$target in $$(dirname $$file)"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./$$(dirname $$file) || exit 1; \
		done; \
	done

FAULTS ?= 1000
SOAK ?= 100000

soak: ## the laws and the oracle over many random histories, and 1,000 fault runs, with one process and with two and three; FAIRLEAD_SOAK_SEED repeats a run
	@seed=$${FAIRLEAD_SOAK_SEED:-$$(date +%s)}; \
	echo "$(SOAK) histories each; the same ones again: FAIRLEAD_SOAK_SEED=$$seed make soak SOAK=$(SOAK)"; \
	$(GO) test ./propagate -run '^Test(Oracle|Laws|FailoverLaws)$$' -rapid.checks=$(SOAK) -rapid.seed=$$seed -timeout 12h -v
	FAIRLEAD_FAULT_SEEDS=$(FAULTS) $(GO) test ./reconcile -run '^Test(Replica)?Faults$$' -timeout 8h

race: ## every test on embedded members, with the race detector (some ten minutes)
	$(GO) test -race -short -timeout 30m ./...

histories: ## folds the history of the repository DIR, of its directory FLEET if that is given
	FAIRLEAD_HISTORIES=$(abspath $(or $(DIR),$(error DIR names no repository))) FAIRLEAD_HISTORIES_PATH=$(FLEET) $(GO) test ./look/history -run '^TestHistories$$' -count 1 -timeout 2h -v

lint: ## what .golangci.yml asks for; the linter is built once
	hack/lint/build.sh
	hack/lint/bin/golangci-lint run --allow-parallel-runners

VERSION ?= dev
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

dist: ## archives of the program for PLATFORMS, with checksums and a bill of materials each, in dist/
	$(GO) -C hack/dist test ./...
	$(GO) -C hack/dist run . -version $(VERSION) -platforms "$(PLATFORMS)"

image: ## an OCI archive for the Linux platforms among PLATFORMS, in dist/; needs no container engine
	$(GO) -C hack/dist run . -version $(VERSION) -platforms "$(PLATFORMS)" -image

generate: ## deepcopy of the API types
	$(GO) generate ./api
