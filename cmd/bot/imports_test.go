package main

import (
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// lower are the packages below bot.
var lower = []string{"sessions", "sessions/*", "memory", "memory/*", "compaction", "compaction/*"}

// mechanisms are packages that any other may import: they know nothing of the others.
var mechanisms = []string{"sessions/guard", "sessions/periodic", "sessions/retry", "sessions/rules"}

// importRules says which packages of ours a package may import. The first pattern that matches counts; a package without
// one is refused, so that a new package is a decision. Test files may import what they like: they are not in the program.
//
// So bot never sees a type of pgx, of DingTalk or of OpenAI, and sql never sees bot.
var importRules = []struct {
	pattern string
	ours    []string
}{
	{"sessions", nil},
	{"sessions/guard", nil},
	{"sessions/retry", nil},
	{"sessions/rules", nil},
	{"sessions/periodic", nil},
	{"sessions/written", []string{"sessions", "sessions/reasoning"}},
	{"sessions/llm", []string{"sessions", "sessions/written"}},
	{"sessions/*", []string{"sessions"}},
	{"memory", []string{"sessions", "sessions/*", "memory/classify"}},
	{"memory/text", nil},
	{"memory/dates", []string{"memory/text"}},
	{"memory/classify", []string{"sessions", "sessions/*", "memory/text", "memory/dates"}},
	{"memory/rank", []string{"memory/text", "memory/dates"}},
	{"memory/similarity", []string{"memory/text", "memory/dates", "memory/classify"}},
	{"memory/reconcile", []string{"sessions", "memory", "memory/text", "memory/dates", "memory/classify"}},
	{"memory/draft", []string{"sessions", "sessions/llm", "memory", "memory/text", "memory/dates", "memory/classify", "memory/reconcile"}},
	{"memory/extract", []string{"sessions", "sessions/*", "memory", "memory/text", "memory/draft"}},
	{"memory/consolidate", []string{"sessions", "sessions/llm", "memory", "memory/text", "memory/draft"}},
	{"memory/show", []string{"sessions", "memory"}},
	{"memory/embed", []string{"memory"}},
	{"compaction/tokens", nil},
	{"compaction", []string{"sessions", "compaction/tokens"}},
	{"compaction/erase", []string{"sessions", "compaction/summarize", "memory/text"}},
	{"compaction/*", []string{"sessions", "sessions/*", "compaction", "compaction/*"}},
	{"memory/pages", []string{"sessions", "memory"}},
	{"bot/gate", []string{"sessions", "sessions/llm"}},
	{"bot/chat", []string{"sessions", "memory", "memory/*", "sessions/llm"}},
	{"bot/wording", []string{"sessions"}},
	{"bot/access", []string{"sessions"}},
	{"bot/reload", append(lower, "bot/access")},
	{"bot/parts", append(lower, "bot/reload", "bot/wording")},
	{"bot/view", append(lower, "bot/chat", "bot/parts", "bot/reload", "bot/wording")},
	{"bot/sendfile", []string{"bot/turn/persist", "sessions"}},
	{"bot/outbox", append(lower, "bot/chat", "bot/parts", "bot/wording")},
	{"bot/blame", nil},
	{"bot/upkeep", append(lower, "bot/blame", "bot/chat", "bot/parts", "bot/reload", "bot/wording", "bot/view", "bot/outbox")},
	{"bot/robots", []string{"bot/chat", "sessions", "sessions/*"}},
	{"bot/rows", []string{"sessions", "memory", "memory/pages"}},
	{"bot/manage", append(lower, "bot/upkeep", "memory/pages")},
	{"bot/command", append(lower, "bot/approval", "bot/knowledge", "bot/manage", "bot/parts", "bot/reload", "bot/schedule", "bot/schedule/when", "bot/sendfile", "bot/wording", "bot/view", "bot/upkeep")},
	{"bot/turn/persist", []string{"sessions"}},
	{"bot/turn/choice", append(lower, "bot/parts", "bot/reload", "bot/wording", "bot/view")},
	{"bot/turn/slot", append(lower, "bot/gate", "bot/chat", "bot/parts", "bot/wording", "bot/view", "bot/turn/choice", "bot/turn/persist")},
	{"bot/turn/answer", append(lower, "bot/approval", "bot/chat", "bot/parts", "bot/sendfile", "bot/wording", "bot/view", "bot/turn/choice", "bot/turn/persist", "bot/turn/slot")},
	{"bot/turn", append(lower, "bot/approval", "bot/gate", "bot/chat", "bot/parts", "bot/reload", "bot/sendfile", "bot/wording", "bot/view", "bot/turn/*")},
	{"bot/retention", []string{"sessions"}},
	{"bot/leader", []string{"sessions", "sessions/*", "bot/chat"}},
	{"bot", append(lower, "bot/access", "bot/approval", "bot/gate", "bot/chat", "bot/knowledge", "bot/manage", "bot/parts", "bot/reload", "bot/sendfile", "bot/wording", "bot/view", "bot/outbox", "bot/upkeep", "bot/command", "bot/schedule", "bot/turn", "bot/turn/*", "bot/leader")},
	{"bot/off", append(lower, "bot", "bot/chat", "bot/manage", "bot/schedule", "bot/turn/answer")},
	{"bot/admin", []string{"sessions", "sessions/*", "memory", "memory/*", "compaction", "compaction/*"}},
	{"bot/config/strict", nil},
	{"bot/config", []string{"bot/config/strict", "sessions", "sessions/*", "compaction", "compaction/*", "bot", "bot/access", "bot/chat", "bot/command", "bot/reload", "bot/schedule", "bot/schedule/when", "bot/tools", "bot/tools/mcp", "bot/view", "sql"}},
	{"bot/console/auth", []string{"memory/pages", "sessions"}},
	{"bot/console/chart", []string{"memory/pages", "sessions"}},
	{"bot/console/render", []string{"bot/wording", "sessions"}},
	{"bot/console", append(lower, "bot/console/*", "memory/pages", "bot/manage", "bot/rows", "bot/schedule/when", "bot/wording")},
	{"bot/dingtalk/value", nil},
	{"bot/dingtalk/frame", []string{"bot/chat", "bot/dingtalk/value", "sessions"}},
	{"bot/dingtalk/request", []string{"bot/chat", "bot/dingtalk/calls", "bot/dingtalk/files", "bot/dingtalk/value", "sessions"}},
	{"bot/dingtalk/openapi", []string{"bot/chat", "bot/dingtalk/calls", "bot/dingtalk/request", "sessions"}},
	{"bot/dingtalk/stream", []string{"bot/chat", "bot/dingtalk/card", "bot/dingtalk/frame", "bot/dingtalk/request", "bot/dingtalk/value", "sessions"}},
	{"bot/dingtalk/calls", []string{"sessions"}},
	{"bot/dingtalk/breaker", []string{"sessions", "sessions/retry"}},
	{"bot/dingtalk/files", []string{"bot/chat", "sessions", "sessions/retry"}},
	{"bot/dingtalk", []string{"bot/chat", "bot/dingtalk/calls", "bot/dingtalk/card", "bot/dingtalk/files", "bot/dingtalk/frame", "bot/dingtalk/markdown", "bot/dingtalk/openapi", "bot/dingtalk/reaction", "bot/dingtalk/request", "bot/dingtalk/stream", "bot/dingtalk/value", "sessions", "sessions/*"}},
	{"bot/dingtalk/reaction", []string{"bot/chat", "bot/dingtalk/breaker", "bot/dingtalk/calls", "sessions", "sessions/*"}},
	{"bot/dingtalk/card", []string{"bot/chat", "bot/dingtalk/breaker", "bot/dingtalk/calls", "bot/dingtalk/markdown", "sessions", "sessions/*"}},
	{"bot/dingtalk/login", []string{"memory/pages", "sessions"}},
	{"bot/dingtalk/markdown", nil},
	{"bot/media/document", nil},
	{"bot/media", []string{"bot/chat", "bot/media/*", "sessions", "sessions/*", "memory/text"}},
	{"bot/openai", []string{"sessions", "sessions/*"}},
	{"bot/schedule/when", []string{"memory/text", "memory/dates"}},
	{"bot/approval", []string{"bot/wording", "sessions", "sessions/*"}},
	{"bot/knowledge", []string{"bot/wording", "memory/text", "sessions", "sessions/*"}},
	{"bot/schedule", []string{"bot/schedule/when", "bot/wording", "sessions", "sessions/*"}},
	{"bot/tools/mcp/mcptest", nil},
	{"bot/tools/mcp", []string{"bot/chat", "sessions", "sessions/*"}},
	{"bot/tools", []string{"bot/chat", "bot/schedule", "bot/schedule/when", "memory", "memory/*", "sessions", "sessions/*"}},
	{"sql/console", []string{"sessions", "memory", "memory/pages", "sql/admin", "sql/compactions", "sql/conversation", "sql/convert", "sql/dbsqlc", "sql/facts", "sql/identity", "sql/pg", "sql/spend"}},
	{"sql", []string{"memory/pages", "sessions", "sessions/*", "memory", "memory/*", "compaction", "compaction/*", "sql/*"}},
	{"sql/dbsqlc", []string{"sessions", "memory"}},
	{"sql/localpg", nil},
	{"sql/citus", nil},
	{"sql/pg", []string{"sessions", "sql/dbsqlc"}},
	{"sql/convert", []string{"sessions", "memory", "sql/dbsqlc", "sql/pg"}},
	{"sql/index", []string{"sessions", "memory", "memory/*", "sql/dbsqlc", "sql/pg"}},
	{"sql/identity", []string{"sessions", "memory", "sql/dbsqlc", "sql/pg"}},
	{"sql/robots", []string{"sessions", "sql/dbsqlc", "sql/pg"}},
	{"sql/calls", []string{"sessions", "sql/dbsqlc", "sql/limits", "sql/pg"}},
	{"sql/spend", []string{"sessions", "sql/dbsqlc", "sql/pg"}},
	{"sql/retention", []string{"sessions", "sql/dbsqlc", "sql/identity", "sql/index", "sql/media", "sql/pg"}},
	{"sql/files", []string{"sessions", "memory/rank", "memory/text", "sql/convert", "sql/dbsqlc", "sql/identity", "sql/media", "sql/pg"}},
	{"sql/media", []string{"sessions", "sql/convert", "sql/dbsqlc", "sql/pg"}},
	{"sql/limits", []string{"sessions", "sql/dbsqlc", "sql/pg"}},
	{"sql/vectors", []string{"sessions", "memory", "sql/dbsqlc", "sql/pg"}},
	{"sql/admin", []string{"sessions", "sql/convert", "sql/dbsqlc", "sql/pg"}},
	{"sql/conversation", []string{"sessions", "sql/convert", "sql/dbsqlc", "sql/identity", "sql/index", "sql/pg"}},
	{"sql/approvals", []string{"sessions", "sql/conversation", "sql/convert", "sql/dbsqlc", "sql/pg"}},
	{"sql/schedules", []string{"sessions", "sql/conversation", "sql/convert", "sql/dbsqlc", "sql/pg"}},
	{"sql/compactions", []string{"sessions", "sql/conversation", "sql/convert", "sql/dbsqlc", "sql/pg", "sql/spend"}},
	{"sql/facts", []string{"sessions", "memory", "memory/*", "sql/convert", "sql/dbsqlc", "sql/identity", "sql/index", "sql/pg", "sql/spend"}},
	{"sql/search", []string{"sessions", "memory", "memory/*", "sql/convert", "sql/dbsqlc", "sql/facts", "sql/files", "sql/identity", "sql/index", "sql/pg", "sql/spend", "sql/vectors"}},
	{"sql/erasure", []string{"sessions", "memory", "memory/*", "compaction", "compaction/*", "sql/compactions", "sql/convert", "sql/dbsqlc", "sql/identity", "sql/index", "sql/limits", "sql/media", "sql/pg", "sql/spend", "sql/vectors"}},
	{"sql/inspect", []string{"sessions", "sql/convert", "sql/dbsqlc"}},
	{"sql/yardstick", []string{"sessions", "memory", "memory/*", "sql/dbsqlc", "sql/facts", "sql/index", "sql/pg"}},
	{"cmd/bot/gateway", []string{"memory/pages", "sessions", "sessions/*", "memory", "memory/*", "compaction", "compaction/*", "bot", "bot/*", "bot/config/strict", "bot/console/auth", "bot/dingtalk/*", "bot/media/*", "bot/tools/*", "bot/turn/answer", "sql", "sql/admin", "sql/facts", "sql/pg", "sql/spend", "sql/localpg"}},
	{"cmd/bot/setup", []string{"bot/config", "bot/config/strict"}},
	{"cmd/lab", []string{"cmd/lab/*"}},
	{"cmd/lab/rig", nil},
	{"cmd/lab/local", []string{"bot", "bot/chat", "sql", "sql/localpg"}},
	{"cmd/lab/*", []string{"sessions", "sessions/*", "memory", "memory/*", "compaction", "compaction/*", "bot", "bot/*", "sql", "sql/*", "cmd/bot/gateway", "cmd/lab/local", "cmd/lab/rig", "cmd/lab/replay"}},
	{"cmd/bot", []string{"sessions", "sessions/*", "memory", "memory/*", "compaction", "compaction/*", "bot", "bot/*", "bot/config/strict", "bot/dingtalk/calls", "bot/media/document", "sql", "sql/admin", "sql/citus", "sql/compactions", "sql/facts", "sql/pg", "sql/spend", "sql/localpg", "cmd/bot/*"}},
}

// owners maps a third-party package, and those below it, to the packages that alone may import it.
var owners = map[string][]string{
	"github.com/ledongthuc/pdf":                       {"bot/media/document"},
	"github.com/modelcontextprotocol/go-sdk":          {"bot/tools/mcp", "bot/tools/mcp/mcptest"},
	"github.com/xuri/excelize":                        {"bot/media/document", "bot/media/document/documenttest", "bot/sendfile"},
	"database/sql":                                    {"sql", "sql/*"},
	"github.com/alecthomas/kong":                      {"cmd/bot", "cmd/lab/rig"},
	"github.com/cenkalti/backoff/v5":                  {"sessions/retry"},
	"github.com/chromedp":                             nil, // test packages
	"github.com/gorilla/websocket":                    {"bot/dingtalk/stream"},
	"github.com/jackc/pgx/v5":                         {"sql", "sql/*"},
	"github.com/blevesearch/snowballstem":             {"memory/text"},
	"github.com/open-dingtalk/dingtalk-stream-sdk-go": {"bot/dingtalk/stream"},
	"github.com/pkoukk/tiktoken-go":                   {"compaction/tokens", "compaction/tokens/*"},
	"github.com/pkoukk/tiktoken-go-loader":            {"compaction/tokens", "compaction/tokens/*"},
	"github.com/pressly/goose/v3":                     {"sql"},
	"github.com/sashabaranov/go-openai":               {"bot/openai"},
	"github.com/tailscale/hujson":                     {"bot/config", "bot/config/strict", "cmd/bot"},
}

//

func TestImports(t *testing.T) {
	t.Parallel()
	for _, problem := range importProblems(moduleFiles(t)) {
		t.Error(problem)
	}
}

// roots are the top-level folders of Go code.
var roots = []string{"bot", "cmd", "compaction", "memory", "sessions", "sql"}

func TestPackagesAreBelowTheRoots(t *testing.T) {
	t.Parallel()
	for _, f := range moduleFiles(t) {
		if root, _, _ := strings.Cut(f.pkg(), "/"); !slices.Contains(roots, root) {
			t.Errorf("%s: package %s is outside the roots %v", f.fset.Position(f.ast.Package), f.pkg(), roots)
		}
	}
}

// importProblems checks the files that are not tests against the tables above.
func importProblems(files []goFile) []string {
	var problems []string
	for _, f := range files {
		if f.isTest() {
			continue
		}
		for _, spec := range f.ast.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				imported = spec.Path.Value
			}
			if why := refuse(f.pkg(), imported); why != "" {
				problems = append(problems, fmt.Sprintf("%s: %s imports %s: %s", f.fset.Position(spec.Pos()), f.pkg(), imported, why))
			}
		}
	}
	return problems
}

// refuse says why pkg may not import a package, or nothing when it may.
func refuse(pkg, imported string) string {
	ours, isOurs := strings.CutPrefix(imported, modulePath+"/")
	switch {
	case isTestPackage(pkg):
		return "" // it is outside the program, and reaches where it has to
	case !isOurs:
		return refuseForeign(pkg, imported)
	case isTestPackage(ours):
		if pkg == "cmd/lab" || strings.HasPrefix(pkg, "cmd/lab/") {
			return ""
		}
		return "a test package belongs in _test.go files and in cmd/lab"
	}
	for _, r := range importRules {
		if !matches(r.pattern, pkg) {
			continue
		}
		for _, allowed := range slices.Concat(mechanisms, r.ours) {
			if matches(allowed, ours) {
				return ""
			}
		}
		return fmt.Sprintf("of ours it may import only %v", r.ours)
	}
	return "the table of import rules has no line for this package"
}

func refuseForeign(pkg, imported string) string {
	for owned, by := range owners {
		if imported != owned && !strings.HasPrefix(imported, owned+"/") {
			continue
		}
		if !slices.ContainsFunc(by, func(pattern string) bool { return matches(pattern, pkg) }) {
			return fmt.Sprintf("only %v may", by)
		}
	}
	return ""
}

// isTestPackage matches sql/sqltest, the packages below such a package, and the store in memory.
func isTestPackage(pkg string) bool {
	return slices.ContainsFunc(strings.Split(pkg, "/"), func(part string) bool { return strings.HasSuffix(part, "test") || part == "memstore" })
}

func matches(pattern, pkg string) bool {
	ok, err := path.Match(pattern, pkg)
	return ok && err == nil
}

func TestImportRulesRefuse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file, imports string
		refused       bool
	}{
		{"sessions/store.go", "ebb/memory", true},
		{"memory/extract/flush.go", "ebb/sessions", false},
		{"memory/extract/flush.go", "ebb/compaction", true},
		{"memory/text/words.go", "ebb/sessions", true},
		{"memory/classify/junk.go", "ebb/memory", true},
		{"memory/store.go", "ebb/memory/draft", true},
		{"bot/turn/turn.go", "ebb/sql", true},
		{"bot/turn/turn.go", "ebb/bot/dingtalk", true},
		{"bot/turn/turn.go", "github.com/jackc/pgx/v5/pgxpool", true},
		{"bot/turn/turn.go", "github.com/sashabaranov/go-openai", true},
		{"bot/turn/turn_test.go", "ebb/sql/sqltest", false},
		{"bot/turn/turn.go", "ebb/sql/sqltest", true},
		{"bot/dingtalk/stream/link.go", "github.com/open-dingtalk/dingtalk-stream-sdk-go/client", false},
		{"bot/openai/client.go", "github.com/open-dingtalk/dingtalk-stream-sdk-go/client", true},
		{"sql/store.go", "ebb/bot", true},
		{"bot/console/page.go", "github.com/chromedp/chromedp", true},
		{"cmd/lab/browsertest/draw.go", "github.com/chromedp/chromedp", false},
		{"sql/store.go", "ebb/sql/dbsqlc", false},
		{"sql/dbsqlc/db.go", "github.com/jackc/pgx/v5", false},
		{"cmd/lab/demo/stage.go", "ebb/bot/dingtalk/dingtalktest", false},
		{"cmd/bot/main.go", "ebb/bot/dingtalk/dingtalktest", true},
		{"cmd/lab/chaos/world.go", "ebb/sql/sqltest", false},
		{"cmd/lab/rig/crowd.go", "ebb/cmd/lab/demo", true},
		{"cmd/bot/main.go", "ebb/sql/sqltest", true},
		{"cmd/bot/main.go", "ebb/sessions/memstore", true},
		{"cmd/bot/main.go", "ebb/cmd/lab/rig", true},
		{"cmd/bot/gateway/gateway.go", "ebb/bot/tools", false},
		{"cmd/bot/gateway/gateway.go", "database/sql", true},
		{"bot/dingtalk/dingtalktest/conformance/main.go", "ebb/bot/dingtalk/dingtalktest", false},
		{"compaction/tokens/tokens.go", "github.com/pkoukk/tiktoken-go", false},
		{"bot/view/assemble.go", "github.com/pkoukk/tiktoken-go", true},
		{"bot/console/page.go", "ebb/memory", false},
		{"bot/console/page.go", "ebb/bot/manage", false},
		{"bot/manage/facts.go", "ebb/bot/view", true},
		{"bot/manage/facts.go", "ebb/sql", true},
		{"bot/console/page.go", "ebb/sql", true},
		{"bot/dingtalk/reply.go", "ebb/bot/dingtalk/card", false},
		{"bot/dingtalk/card/card.go", "ebb/bot/dingtalk", true},
		{"bot/media/document/pdf.go", "github.com/ledongthuc/pdf", false},
		{"bot/turn/turn.go", "github.com/ledongthuc/pdf", true},
		{"bot/schedule/runner.go", "ebb/bot/wording", false},
		{"bot/tools/mcp/client.go", "github.com/modelcontextprotocol/go-sdk/mcp", false},
		{"bot/tools/mcp/client.go", "ebb/memory", true},
		{"cmd/bot/gateway/gateway.go", "ebb/bot/tools/mcp", false},
		{"newcomer/new.go", "ebb/sessions", true},
		{"newcomer/new.go", "fmt", false},
	} {
		src := fmt.Sprintf("package p\n\nimport _ %q\n", tt.imports)
		problems := importProblems([]goFile{parseGoFile(t, tt.file, []byte(src))})
		if got := len(problems) > 0; got != tt.refused {
			t.Errorf("%s importing %s: refused %v, want %v %q", tt.file, tt.imports, got, tt.refused, problems)
		}
	}
}

// Nothing that is linked into the program is a simulator, a suite or a loader.
func TestProgramLinksNoEquipment(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", modulePath+"/cmd/bot").Output()
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range strings.Lines(string(out)) {
		pkg = strings.TrimSpace(pkg)
		ours, isOurs := strings.CutPrefix(pkg, modulePath+"/")
		if pkg == "testing" || isOurs && (isTestPackage(ours) || strings.HasPrefix(ours, "cmd/lab")) {
			t.Errorf("cmd/bot links %s", pkg)
		}
	}
}

// The program links the libraries that its design chose: code of ours in place of one would be a copy of it to keep.
func TestProgramLinksTheChosenLibraries(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", modulePath+"/cmd/bot").Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	for _, pkg := range []string{
		"github.com/open-dingtalk/dingtalk-stream-sdk-go/payload", "github.com/jackc/pgx/v5", "github.com/pressly/goose/v3",
		"github.com/sashabaranov/go-openai", "github.com/pkoukk/tiktoken-go", "github.com/pkoukk/tiktoken-go-loader/assets",
		"github.com/rs/zerolog", "github.com/tailscale/hujson", "github.com/cenkalti/backoff/v5",
		"github.com/hashicorp/golang-lru/v2", "github.com/prometheus/client_golang/prometheus", "github.com/alecthomas/kong",
	} {
		if !slices.Contains(linked, pkg) {
			t.Errorf("cmd/bot does not link %s", pkg)
		}
	}
}
