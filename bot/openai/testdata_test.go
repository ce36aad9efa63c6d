package openai

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ebb/bot/openai/openaitest"
	"ebb/sessions/llm"
)

// body is a line of a table of testdata.
type body struct {
	status int
	wanted string
	text   string
}

func bodies(t *testing.T, name string) (rows []body) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		status, err := strconv.Atoi(f[0])
		if err != nil || len(f) != 3 {
			t.Fatalf("%s: %q", name, line)
		}
		rows = append(rows, body{status, f[1], f[2]})
	}
	return rows
}

// Each error of the table leads to a right remedy.
func TestErrorsOfTheTable(t *testing.T) {
	t.Parallel()
	rows := bodies(t, "errors.tsv")
	if len(rows) < 350 {
		t.Errorf("the table has %d errors", len(rows))
	}
	for _, r := range rows {
		if e := parseFailure(r.status, []byte(r.text)); !slices.Contains(strings.Fields(r.wanted), string(e.classOf())) {
			t.Errorf("%d %s: got class %s, want %s", r.status, r.text, e.classOf(), r.wanted)
		}
	}
}

// Each refusal of the table changes one property of an ordinary request, and no other.
func TestFormsOfTheTable(t *testing.T) {
	t.Parallel()
	s := openaitest.NewServer(t)
	rows := bodies(t, "forms.tsv")
	if len(rows) < 100 {
		t.Errorf("the table has %d refusals", len(rows))
	}
	for _, r := range rows {
		m := clientOf(t, 0, s).models[0]
		warm := float32(0.3)
		m.conf.Temperature, m.conf.Params = &warm, map[string]any{"top_k": 20}
		request := talk()
		request.MaxOutput, request.Delta = 20000, (&heard{}).delta
		e := parseFailure(r.status, []byte(r.text))
		after, ok := m.lessons.nextForms(forms{}, m.buildCall(request, rungNone, forms{}), &llm.CallError{Class: e.classOf(), Status: r.status}, e)
		learned := after.describeForms()
		right := ok && len(learned) == 1 && slices.ContainsFunc(strings.Split(r.wanted, "|"), func(p string) bool { return strings.Contains(learned[0], p) })
		if r.wanted == "suspects" {
			right = ok && len(learned) > 1
		}
		if !right {
			t.Errorf("%d %s: learned %q, want %q", r.status, r.text, learned, r.wanted)
		}
	}
}
