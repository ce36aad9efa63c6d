package render

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ebb/compaction"
	"ebb/memory"
	"ebb/memory/draft"
	"ebb/memory/extract"
)

// codes are the values that the product writes into tables and that pages show, by the beginning of their keys. They are the
// constants of a package with a name or a type that matches.
var codes = []struct{ keys, dir, names, typ string }{
	{"trigger.", "compaction", "^Trigger", ""},
	{"trigger.", "bot/upkeep", "^(Trigger|[Ff]lush)[A-Z]", ""},
	{"trigger.", "cmd/bot", "^importVersion$", ""},
	{"outcome.", "sessions", "", "CompactionOutcome"},
	{"flushed.", "bot/upkeep", "^Flushed[A-Z]", ""},
	{"flushed.", "memory/extract", "^flushed[A-Z]", ""},
	{"reason.", "bot/upkeep", "^owed[A-Z]", ""},
	{"reason.", "bot/upkeep", "^reason[A-Z]", "Reason"},
	{"reason.model error: ", "sessions/llm", "", "ErrorClass"},
	{"mode.", "compaction", "", "Mode"},
	{"topic.", "memory", "", "Kind"},
	{"scope.", "memory", "", "Scope"},
	{"why.", "memory/rank", "^why[A-Z]", ""},
	{"why.", "sql/search", "^why[A-Z]", ""},
	{"kind.", "sessions", "^Spent[A-Z]", ""},
	{"state.", "sessions", "", "State"},
	{"schedule.", "sessions", "", "ScheduleKind"},
	{"schedule.", "sessions", "", "ScheduleState"},
	{"approval.", "sessions", "", "ApprovalState"},
	{"ending.", "sessions", "", "Ending"},
	{"role.", "sessions", "", "Role"},
	{"action.", "bot/manage", "^[A-Z]", "string"},
	{"ended.", "bot/manage", "^outcome", ""},
	{"ended.", "bot/manage", "", "Refusal"},
}

// Each value that the product writes has words in each language: pages show no code of the program.
func TestCodesHaveWords(t *testing.T) {
	t.Parallel()
	r, err := New(nil, uncharged)
	if err != nil {
		t.Fatal(err)
	}
	check := func(keys, code string) {
		for lang, words := range r.words {
			text := words.all[keys+code]
			if text == "" || strings.Contains(text, "%") {
				t.Errorf("%s%s has the words %q in %s", keys, code, text, lang)
			}
		}
	}
	for _, c := range codes {
		values := stringConstants(t, c.dir, regexp.MustCompile(c.names), c.typ)
		if len(values) == 0 {
			t.Errorf("%s has no constants %s of type %q", c.dir, c.names, c.typ)
		}
		for _, value := range values {
			check(c.keys, value)
		}
	}
	for _, name := range sources(t, "..") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`audited\("([^"]*)"`).FindAllSubmatch(text, -1) {
			check("action.", string(m[1]))
		}
	}
	unaudited := []string{"error.limit", "error.days", "error.by", "error.period", "error.arguments"} // no action ends with them
	for key, text := range r.words["zh"].all {
		if strings.HasPrefix(key, "error.") && !strings.HasPrefix(key, "error.filter") && strings.Contains(text, "%") && !slices.Contains(unaudited, key) {
			check("ended.", key)
		}
	}
	for name := range compaction.Policies {
		check("policy.", name)
	}
	for _, err := range []error{draft.ErrNotSaved, extract.ErrSpent, extract.ErrUnusable} {
		check("reason.", err.Error())
	}
}

// sources are the files of a package without its tests.
func sources(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
}

// stringConstants are the values of a package's constants whose names match, of a type: "" is any, and "string" none of its own.
func stringConstants(t *testing.T, dir string, names *regexp.Regexp, typ string) (values []string) {
	t.Helper()
	for _, name := range sources(t, "../../../"+dir) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				one := spec.(*ast.ValueSpec)
				own, _ := one.Type.(*ast.Ident)
				if typ == "string" && own != nil || typ != "" && typ != "string" && (own == nil || own.Name != typ) {
					continue
				}
				for i, value := range one.Values {
					literal, ok := value.(*ast.BasicLit)
					if !ok || literal.Kind != token.STRING || literal.Value == `""` || !names.MatchString(one.Names[i].Name) {
						continue
					}
					text, err := strconv.Unquote(literal.Value)
					if err != nil {
						t.Fatal(err)
					}
					values = append(values, text)
				}
			}
		}
	}
	return values
}

// The error of a compaction begins with its reason, and the source of a hit is written for models.
func TestReasonAndSpeaker(t *testing.T) {
	t.Parallel()
	r, err := New(nil, uncharged)
	if err != nil {
		t.Fatal(err)
	}
	zh := r.words["zh"]
	for text, want := range map[string]string{
		"model error: busy": "模型服务繁忙", "no gain: 3": "压缩后不会明显变小", "storage: x": "存储出错", "text of an older release": "text of an older release", "": "",
	} {
		if got := zh.Reason(text); got != want {
			t.Errorf("the reason of %q is %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]CodeView{
		"no gain: 3": {"no gain: 3", "压缩后不会明显变小"}, "an older release": {"an older release", zh.T("reason.unnamed")}, Mask("no gain"): {"", "••• (7)"},
	} {
		if got := zh.Failure(text); got != want {
			t.Errorf("the failure %q is %q, want %q", text, got, want)
		}
	}
	by := memory.Memory{SaidBy: "u-1", SaidByNick: "李娜"}
	for source, want := range map[string]string{
		memory.Memory{}.Source(): "不明", by.Source(): "u-1「李娜」", memory.Memory{SaidBy: "u-1", SubjectID: "u-2"}.Source(): "u-1，关于 u-2", "assistant": "机器人", "李娜(u-1)": "李娜(u-1)",
	} {
		if got := zh.Speaker(source); got != want {
			t.Errorf("the speaker of %q is %q, want %q", source, got, want)
		}
	}
}

// A code may have several parts, with numbers. Values without words stay as they are.
func TestCode(t *testing.T) {
	t.Parallel()
	r, err := New(nil, uncharged)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][4]string{
		{"flushed", "saved 3, known 1", "存下 3、已有 1", "saved 3, known 1"},
		{"detail", "12 events", "12 条消息", "12 events"},
		{"detail", "memory 7", "记忆 7", "memory 7"},
		{"why", "date 2026-05-20", "日期 2026-05-20", "date 2026-05-20"},
		{"why", "支付", "支付", "支付"},
		{"ended", "error.nothing_to_undo", "没有可以撤销的压缩。", "There is no compaction to undo."},
		{"ended", "", "", ""},
	} {
		if zh, en := r.words["zh"].Code(c[0], c[1]), r.words["en"].Code(c[0], c[1]); zh != c[2] || en != c[3] {
			t.Errorf("%s %q is %q and %q, want %q and %q", c[0], c[1], zh, en, c[2], c[3])
		}
	}
}
