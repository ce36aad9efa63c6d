package main

import (
	"slices"
	"strings"
	"testing"
)

func TestLanguageFindings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, src string
		want      []string
	}{
		{"plain", "// Run ends the run when ctx ends.\nfunc Run() {}", nil},
		{"dialect", "// Run is\n// told what to do.\nfunc Run() {}", []string{`p/a.go:4: "told": write reported, stored, summarized`}},
		{"dialect over two lines", "// Run takes so\n// many of them.\nfunc Run() {}", []string{`p/a.go:3: "so many": write the number`}},
		{"opener", "// Run runs. What it\n// does is good.\nfunc Run() {}", []string{`p/a.go:3: a sentence opens with "What": begin with its noun`}},
		{"opener in a list", "// Run does:\n//   - Of this a part.\nfunc Run() {}", []string{`p/a.go:4: a sentence opens with "Of": begin with its noun`}},
		{"drawing", "// Run does:\n//\n//\tWhat is told here.\nfunc Run() {}", nil},
		{"directive", "//go:noinline\nfunc Run() {}", nil},
		{"sentence of 30 words", "// " + strings.Repeat("word ", 30) + "- end.\nfunc Run() {}", []string{
			"p/a.go:3: a sentence of 31 words, want at most 30: word word word word word word …",
		}},
		{"two sentences", "// " + strings.Repeat("word ", 20) + "end. " + strings.Repeat("word ", 20) + "end.\nfunc Run() {}", nil},
		{"names", "type heartBeat struct{ told int }\n\nfunc f(nobody int) { verdict := nobody; _ = verdict }", []string{
			`p/a.go:3: heartBeat has "heart": write heartbeat`, `p/a.go:3: told has "told": write reported, notified`,
			`p/a.go:5: nobody has "nobody": write none`, `p/a.go:5: verdict has "verdict": write result`,
		}},
		{"log", `func f() { log.Msg("Nobody was told") }`, []string{
			`p/a.go:3: a sentence opens with "Nobody": begin with its noun`,
			`p/a.go:3: "nobody": write no member, no caller`, `p/a.go:3: "told": write reported, stored, summarized`,
		}},
		{"error", `var err = fmt.Errorf("read anew: %w", cause)`, []string{`p/a.go:3: "anew": write again`}},
		{"help", "type cmd struct {\n\tA int `help:\"So many rows.\"`\n}", []string{`p/a.go:4: "so many": write the number`}},
		{"phrase", `var s = []string{"So that nobody reads it."}`, []string{`p/a.go:3: "nobody": write no member, no caller`}},
		{"key", `var s = "told"`, nil},
		{"word list", "var s = `told\n\ttell`", nil},
		{"trailing comment", "var (\n\ta = 1 // of one\n\tb = 2 // times of two\n\t// of c\n\tc = 3\n)", []string{
			`p/a.go:4: a trailing comment opens with "of": begin with its noun`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range languageFindings([]goFile{parseGoFile(t, "p/a.go", []byte("package p\n\n"+tt.src+"\n"))}) {
				got = append(got, f.place+": "+f.text)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLanguageFindingsOfTests(t *testing.T) {
	t.Parallel()
	const src = `package p

// Who asks is told.
func TestNobodyAsks(t *testing.T) {
	t.Errorf("%d were told", say("tell me"))
	want(t, "so many rows", rows, "what nobody said")
}
`
	want := []string{
		`p/a_test.go:3: "told": write reported, stored, summarized`, `p/a_test.go:3: a sentence opens with "Who": begin with its noun`,
		`p/a_test.go:4: TestNobodyAsks has "Nobody": write none`, `p/a_test.go:5: "told": write reported, stored, summarized`,
		`p/a_test.go:6: "so many": write the number`,
	}
	var got []string
	for _, f := range languageFindings([]goFile{parseGoFile(t, "p/a_test.go", []byte(src))}) {
		got = append(got, f.place+": "+f.text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLanguageOfScenarios(t *testing.T) {
	t.Parallel()
	const script = "# A reply is\n# told once.\nsay a b\n\n# Who asks is answered.\nsay told\n"
	want := []string{
		`a.txtar:2: "told": write reported, stored, summarized`, `a.txtar:5: a sentence opens with "Who": begin with its noun`,
	}
	var got []string
	for _, f := range scenarioCommentFindings("a.txtar", script) {
		got = append(got, f.place+": "+f.text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLanguageOfPages(t *testing.T) {
	t.Parallel()
	const text = "# What is told\n\nWhat it is\ntold goes on. `told`\n\n```\ntold\n```\n\n| told | Of these rows |\n* nobody\n"
	want := []string{
		`docs/a.md:4: "told": write reported, stored, summarized`, `docs/a.md:3: a sentence opens with "What": begin with its noun`,
		`docs/a.md:10: "told": write reported, stored, summarized`, `docs/a.md:10: a sentence opens with "Of": begin with its noun`,
		`docs/a.md:11: "nobody": write no member, no caller`,
	}
	var got []string
	for _, f := range pageFindings(docPage{"docs/a.md", text}) {
		got = append(got, f.place+": "+f.text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLanguageTableRatchets(t *testing.T) {
	t.Parallel()
	findings := []finding{{"p", "long", "p/a.go:3", "a long sentence"}, {"p", "long", "p/a.go:9", "another"}}
	for _, tt := range []struct {
		allowed int
		want    []string
	}{
		{1, []string{"p long: 2 findings, at most 1 allowed:", "p/a.go:3: a long sentence", "p/a.go:9: another"}},
		{2, nil},
		{3, []string{"p long: 2 findings, and testdata/language.txt allows 3: run go test ./cmd/bot -run TestLanguage -update"}},
	} {
		found, allowed := countFindings(findings), map[string]int{"p long": tt.allowed}
		got := slices.Concat(languageProblems(findings, found, allowed), staleAllowances(found, allowed))
		if !slices.Equal(got, tt.want) {
			t.Errorf("%d allowed: got %q, want %q", tt.allowed, got, tt.want)
		}
	}
}
