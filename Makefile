# The tools are run through the Go toolchain at these versions: nothing but Go has to be installed for them.
SQLC          := github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

VERSION     ?= dev
DEMO_FLAGS  ?=
CHAOS_FLAGS ?=
# Recorded dialogues for the cost replay, where somebody has put them there; without them it makes its own.
export EBB_LOCOMO ?= $(wildcard ../shared/retrieval/data)

.DEFAULT_GOAL := help
.PHONY: help program demo screenshots test test-race test-long fuzz lint generate bench chaos soak cost-plot conformance build deps

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The bot that cmd/lab runs, built like cmd/lab itself, so that both share what is compiled.
program:
	@go build -o bin/bot ./cmd/bot

demo: deps program ## Show the whole of Ebb on this machine; DEMO_FLAGS=--once ends by itself
	go run ./cmd/lab demo $(DEMO_FLAGS)

screenshots: ## Draw the pages of the console into docs/console
	@.ci/deps.sh screenshots
	go run ./cmd/lab/browsertest

# Tests of a minute each, on large tables, and those that measure pure functions. The race detector would make them several
# times longer. The whole suite of stores behind a pooler is one: the scenario postgres_pooler stays among the short tests.
LONG := TestProviders|TestGrowth|TestQuality|TestKilledAtEveryStep|TestImportIsWorkedOff|TestSmallerWindowIsWorkedOff|TestReopenedRangeIsWorkedOff|TestHeapOfTurns|TestLongScripts|TestForgetInManySessions|TestBacklogOfLongMessages|TestVectorsAsText|TestSearchAmongLongMessages|TestStoreBehindPooler|TestSafeTakesProportionalTime|TestBodyGrowth
# The packages with long tests, whose binaries alone are linked for them.
LONG_PACKAGES = $(shell grep -rlE '^func ($(LONG))' --include='*_test.go' cmd/bot sql bot compaction memory sessions | xargs -n 1 dirname | sed 's|^|./|' | awk '!seen[$$0]++')
# The longest ones begin first.
FIRST := ./cmd/bot ./cmd/lab/browsertest ./sql/erasure ./bot ./sql ./sql/index
# The packages with goroutines, and the tests of the others below sql with some. Others run without the race detector only.
CONCURRENT := ./bot ./bot/admin ./bot/approval ./bot/bottest ./bot/command ./bot/console ./bot/dingtalk/... ./bot/gate ./bot/leader ./bot/media/... ./bot/openai/... ./bot/outbox ./bot/reload ./bot/robots ./bot/tools/mcp/... ./bot/turn/... ./bot/upkeep ./bot/view ./sessions/guard ./sessions/lease ./sessions/memstore ./sessions/periodic ./sessions/retry ./sessions/serial ./sessions/sessionstest ./sql/limits ./sql/localpg ./sql/pg ./sql/search ./sql/sqltest ./cmd/bot/gateway ./cmd/bot/setup
# Simulated days and large backlogs of package bot, and a file that unpacks to 600 MB: their goroutines are those of shorter tests beside them.
DAYS := TestFaultsAreNamed|TestDigestsCatchUp|TestDaysWithoutDigest|TestDigestRetriesAFailedModel|TestInterruptedDigestIsCountedOnce|TestDigestMindsTheBudget|TestFlushEndsWithTheDaysTokens|TestLongMessagesAreNotMergedBeyondTheWindow|TestManyCompactionsLoseNothing
SHARED := TestPipelinesReadTheirOwnRows|TestRetentionOfTwoReplicas|TestRedeliveredDuringADeletion|TestScheduleFiresOnce|TestActionDuringAnErasure|TestStore|TestOneDigestADay|TestErasureOverALongSummary|TestConnectionsCut|TestForgottenAtTheSameTime|TestForgettingATeamFactWakesFew|TestLateReadersPinNothingForgotten|TestForgetPersonWaitsWithoutAPlace|TestForgetByTwoTurnsAtOnce|TestErasureLocksReadersFirst|TestErasuresLockSessionsInOneOrder|TestErasuresLockAllReadersInOneOrder|TestWindowsOfATurnAreLockedInOrder|TestErasuresAwaitRepliesThatAreSent|TestErasureBrokenOffBeforeATryEnds|TestFrozenInATransaction|TestFrozenInAPipeline|TestSlowCopyIsNotEnded|TestHeartbeatWaitsBehindNothing|TestMigrateAtOnce|TestMigrateAfterACut|TestSerializable|TestUnconfiguredPoolerIsReported|TestRestartIsReportedOnce|TestMeaningStaysInItsScope|TestSearchWithoutTheEndpoint|TestDecisionsAtOnce
# The packages below sql with such tests, besides those whose tests all run.
SHARED_PACKAGES = $(filter-out $(CONCURRENT),$(shell grep -rlE '^func ($(SHARED)).t ' --include='*_test.go' sql | xargs -n 1 dirname | sed 's|^|./|' | sort -u))

# The first command is the vet of all packages: that of each test would repeat a part of it. -w leaves out debug information:
# to link the tests takes a third less, and traces have their lines all the same. Three packages run at a time, since most
# wait for half of their time, for a database or a deadline: two keep one and a half cores busy.
test: ## Run the tests of all packages, without the long ones
	@.ci/deps.sh tests
	go vet ./...
	go test -p 3 -vet=off -ldflags=-w -shuffle=on -timeout 20m -skip '$(LONG)' $(FIRST) ./...

# -short makes the property tests draw a fifth of their cases: a race shows in few.
test-race: ## Run the packages with goroutines under the race detector
	@.ci/deps.sh tests
	CGO_ENABLED=1 go test -race -vet=off -ldflags=-w -short -shuffle=on -timeout 30m -skip '$(LONG)|^($(DAYS))$$' $(CONCURRENT)
	CGO_ENABLED=1 go test -race -vet=off -ldflags=-w -short -shuffle=on -timeout 30m -run '^($(SHARED))$$' $(SHARED_PACKAGES)

test-long: ## Run the long tests
	@.ci/deps.sh tests
	go test -vet=off -ldflags=-w -shuffle=on -timeout 30m -run '$(LONG)' $(LONG_PACKAGES)

# Each fuzz target states a law in its comment. Their seeds are cases of `make test`.
FUZZ_TIME ?= 20s

fuzz: ## Run each fuzz target for FUZZ_TIME; a file that breaks one is kept beside it
	@grep -roE --include='*_test.go' '^func Fuzz[A-Za-z]+' bot cmd compaction memory sessions sql | sort | while IFS=: read -r file target; do \
		echo "$$(dirname $$file) $${target#func }"; \
		go test -vet=off -run '^$$' -fuzz "^$${target#func }\$$" -fuzztime $(FUZZ_TIME) "./$$(dirname $$file)" || exit 1; \
	done

lint: ## Check format and style
	@unformatted=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); \
		if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	CGO_ENABLED=0 go run $(GOLANGCI_LINT) run ./...

generate: ## Write the Go code for the SQL, docs/configuration.md and docs/commands.md again
	CGO_ENABLED=0 go run $(SQLC) generate -f sql/sqlc.yaml
	go run ./cmd/lab/configdoc

bench: deps program ## Measure what the design promises, as one table
	go run ./cmd/lab bench

chaos: deps program ## Run fault injection for half an hour and check that nothing is lost; CHAOS_FLAGS=--for=5m, --seed=N
	go run ./cmd/lab chaos $(CHAOS_FLAGS)

soak: deps program ## Talk to gateways for half an hour and check that memory, goroutines, files and tables stay flat
	go run ./cmd/lab chaos --calm --rate 20 $(CHAOS_FLAGS)

cost-plot: deps program ## Draw what compaction policies cost into docs/
	@mkdir -p docs
	go run ./cmd/lab bench replay --plot docs/compaction-cost.svg

conformance: ## Run the official Node SDK against the DingTalk simulator, and the client of tools against MCP's reference servers
	go run ./bot/dingtalk/dingtalktest/conformance
	go run ./bot/tools/mcp/mcptest/conformance

build: ## Build bin/bot
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/bot ./cmd/bot

deps: ## Install PostgreSQL where it is missing and can be installed
	@.ci/deps.sh
