package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebb/cmd/lab/labtest"
	"ebb/cmd/lab/rig"
)

const (
	evalDocsText = `{"conv":"c1","id":"c1/1","seq":1,"session":1,"speaker":"Zoe","role":"peer","ts":"2026-05-08T13:56:00","text":"The logo should be turquoise."}
{"conv":"c1","id":"c1/2","seq":2,"session":1,"speaker":"assistant","role":"assistant","ts":"2026-05-08T13:57:00","text":"我推荐四季餐厅。"}
{"conv":"c2","id":"c2/1","seq":1,"session":1,"speaker":"Max","role":"memory","ts":"2026-05-08","text":"Max 的预算是两百万"}
{"conv":"c2","id":"c2/2","seq":2,"session":1,"speaker":"Max","role":"memory","ts":"2026-05-08","text":"max的预算是两百万。"}
{"conv":"c2","id":"c2/3","seq":3,"session":1,"speaker":"Max","role":"user","text":"the logo is red"}
`
	evalQueriesText = `{"conv":"c1","qid":"q1","query":"What colour is the logo?"}
{"conv":"c1","qid":"q2","query":"你推荐过哪家餐厅"}

{"conv":"c2","qid":"q3","query":"预算是多少"}
{"conv":"c2","qid":"q4","query":"nothing of that kind"}
`
)

func evalDir(t *testing.T, docs, queries string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"set.docs.jsonl": docs, "set.queries.jsonl": queries, "README": "no data"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// It needs no configuration, keeps each conversation to itself, and leaves nothing behind.
func TestEval(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none")
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dir := evalDir(t, evalDocsText, evalQueriesText)
	run := filepath.Join(t.TempDir(), "run.jsonl")
	code, stdout, stderr := labtest.RunCommand(t, &grammar{}, "eval", "--data", dir, "--out", run)
	if code != 0 || !strings.Contains(stdout, "set ") || !strings.Contains(stdout, "p95") {
		t.Fatalf("exit %d, %q, %q", code, stdout, stderr)
	}
	data, err := os.ReadFile(run)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for line := range strings.Lines(string(data)) {
		var l struct {
			ID   string   `json:"qid"`
			Docs []string `json:"docs"`
			MS   float64  `json:"ms"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.MS <= 0 || l.Docs == nil {
			t.Fatalf("the run has the line %q (%v)", line, err)
		}
		got[l.ID] = strings.Join(l.Docs, " ")
	}
	for id, want := range map[string]string{"q1": "c1/1", "q2": "c1/2", "q3": "c2/1 c2/2", "q4": ""} {
		if first, _, _ := strings.Cut(got[id]+" ", " "); first != strings.Fields(want + " -")[0] && want != "" || want == "" && got[id] != "" ||
			!strings.HasPrefix(got[id], want) {
			t.Errorf("%s finds %q, want %q first", id, got[id], want)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestEvalNamesTheLine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ docs, queries, want string }{
		"no JSON":             {evalDocsText + "{", evalQueriesText, "set.docs.jsonl:6: want an object with conv, id, text"},
		"a list":              {evalDocsText + "[1]", evalQueriesText, "set.docs.jsonl:6: got a list, want an object with conv, id, text\n"},
		"null":                {evalDocsText + "null", evalQueriesText, "set.docs.jsonl:6: got no conv or no id, want an object with conv, id, text\n"},
		"a number":            {evalDocsText + `{"conv":"c","id":7}`, evalQueriesText, "set.docs.jsonl:6: id: got a number, want a string\n"},
		"no text":             {evalDocsText + `{"conv":"c","id":"7"}`, evalQueriesText, "set.docs.jsonl:6: got no text"},
		"a query twice":       {evalDocsText, evalQueriesText + `{"conv":"c1","qid":"q1","query":"logo"}`, "set.queries.jsonl:6: a query \"q1\" came before"},
		"an empty query":      {evalDocsText, evalQueriesText + `{"conv":"c1","qid":"q5","query":" "}`, "set.queries.jsonl:6: got no qid or no query"},
		"no queries":          {evalDocsText, "\n", "have no query"},
		"a document twice":    {evalDocsText + evalDocsText, evalQueriesText, "set.docs.jsonl:6: a document \"c1/1\" came before"},
		"a time that is none": {`{"conv":"c","id":"1","text":"t","ts":"soon"}`, evalQueriesText, "set.docs.jsonl:1: ts \"soon\""},
		"a query of nothing":  {evalDocsText, evalQueriesText + `{"conv":"c9","qid":"q5","query":"logo"}`, "set.queries.jsonl:6: query \"q5\""},
	} {
		code, _, stderr := labtest.RunCommand(t, &grammar{}, "eval", "--data", evalDir(t, tt.docs, tt.queries), "--out", filepath.Join(t.TempDir(), "run"))
		if code != 2 || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: exit %d, %q, want %q", name, code, stderr, tt.want)
		}
	}
	if code, _, stderr := labtest.RunCommand(t, &grammar{}, "eval", "--data", t.TempDir(), "--out", filepath.Join(t.TempDir(), "run")); code != 2 || !strings.Contains(stderr, ".docs.jsonl") {
		t.Errorf("an empty folder: exit %d, %q", code, stderr)
	}
}

// A file that is no run is not written over, least of all the data.
func TestEvalSparesFiles(t *testing.T) {
	t.Parallel()
	dir := evalDir(t, evalDocsText, evalQueriesText)
	elsewhere := t.TempDir()
	link := filepath.Join(elsewhere, "link")
	if err := os.Symlink(filepath.Join(dir, "set.docs.jsonl"), link); err != nil {
		t.Fatal(err)
	}
	for out, want := range map[string]string{
		filepath.Join(dir, "set.docs.jsonl"): "among the data", filepath.Join(dir, "run.jsonl"): "among the data",
		filepath.Join(dir, "README"): "no run", link: "is set.docs.jsonl", elsewhere: "is a folder", "": "want the name of a file",
	} {
		before, _ := os.ReadFile(out)
		code, _, stderr := labtest.RunCommand(t, &grammar{}, "eval", "--data", dir, "--out", out)
		after, _ := os.ReadFile(out)
		if code != 2 || !strings.Contains(stderr, want) || string(after) != string(before) {
			t.Errorf("--out %q: exit %d, %q, want %q; the file was %q and is %q", out, code, stderr, want, before, after)
		}
	}
	empty := filepath.Join(elsewhere, "empty")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "none.docs.jsonl"), nil, 0o600), os.Symlink(filepath.Join(dir, "none.docs.jsonl"), empty)); err != nil {
		t.Fatal(err)
	}
	if err := checkOut(dir, empty); err == nil {
		t.Error("over an empty file of the data")
	}
	old := filepath.Join(elsewhere, "old")
	if err := os.WriteFile(old, []byte(`{"qid":"q1","docs":[],"ms":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkOut(dir, old); err != nil {
		t.Errorf("over a run: %v", err)
	}
}

// A memory that stands for many documents brings no more ids than a line may have, and a mark at the beginning of a file
// is no part of it.
func TestEvalBoundsALine(t *testing.T) {
	t.Parallel()
	docs := "\xef\xbb\xbf"
	for i := range 30 {
		docs += fmt.Sprintf(`{"conv":"c1","id":"d%d","role":"memory","text":"the logo is turquoise"}`+"\n", i)
	}
	run := filepath.Join(t.TempDir(), "run")
	code, _, stderr := labtest.RunCommand(t, &grammar{}, "eval", "--data", evalDir(t, docs, `{"conv":"c1","qid":"q1","query":"What colour is the logo?"}`), "--out", run)
	data, err := os.ReadFile(run)
	var l evalLine
	if code != 0 || err != nil || json.Unmarshal(data, &l) != nil || len(l.Docs) != evalFinds {
		t.Errorf("exit %d, %q, %q (%v)", code, stderr, data, err)
	}
}

// grammar is that of a lab with this command alone.
type grammar struct {
	rig.Globals

	Eval Command `cmd:""`
}
