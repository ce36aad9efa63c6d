package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"ebb/sessions"
)

func TestParseSave(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("发布计划定在周五，由张伟负责。", 60)
	for name, c := range map[string]struct {
		args     string
		facts    []string // contents, "…" for what only begins so
		rejected string
		fails    bool
	}{
		"one":                 {`{"facts":[{"content":"Carol owns billing","kind":"profile"}]}`, []string{"profile Carol owns billing"}, "", false},
		"kind unknown":        {`{"facts":[{"content":"x is y","kind":"rumour"}]}`, []string{"fact x is y"}, "", false},
		"nothing to save":     {`{"facts":[],"nothing_to_save":true}`, nil, "", false},
		"nothing said":        {`{"facts":[]}`, nil, "", true},
		"no arguments":        {``, nil, "", true},
		"not an object":       {`["a fact"]`, nil, "", true},
		"broken off":          {`{"facts":[{"content":"half a`, nil, "", true},
		"wrong type":          {`{"facts":"all of them"}`, nil, "", true},
		"blank":               {`{"facts":[{"content":" \n","kind":"fact"}]}`, nil, "is empty", true},
		"blank and good":      {`{"facts":[{"content":""},{"content":"good"}]}`, []string{"fact good"}, "facts[0]", false},
		"white space":         {"{\"facts\":[{\"content\":\" a\\n\\t b\\u0000\\u0007 \"}]}", []string{"fact a b"}, "", false},
		"password":            {`{"facts":[{"content":"管理员密码是 hunter2"}]}`, nil, "credential", true},
		"password, English":   {`{"facts":[{"content":"The password is hunter2"}]}`, nil, "credential", true},
		"key":                 {`{"facts":[{"content":"use sk-abcdefghijklmnop1234 for it"},{"content":"fine"}]}`, []string{"fact fine"}, "credential", false},
		"private key":         {`{"facts":[{"content":"-----BEGIN RSA PRIVATE KEY----- MII"}]}`, nil, "credential", true},
		"cloud key":           {`{"facts":[{"content":"it is AKIAIOSFODNN7EXAMPLE"}]}`, nil, "credential", true},
		"one of a wrong type": {`{"facts":[{"content":"ok"},{"content":"x","kind":3},"text",null,{"content":["y"]},{"content":"fine"}]}`, []string{"fact ok", "fact fine"}, "facts[1]", false},
		"all of wrong types":  {`{"facts":[{"content":3}]}`, nil, "facts[0]", true},
		"about passwords":     {`{"facts":[{"content":"密码每 90 天要换一次"}]}`, []string{"fact 密码每 90 天要换一次"}, "", false},
		"too long by far":     {fmt.Sprintf(`{"facts":[{"content":%q}]}`, strings.Repeat("x", 20_000)), nil, "bytes", true},
		"long":                {fmt.Sprintf(`{"facts":[{"content":%q,"kind":"decision"}]}`, long), []string{"decision …", "decision …", "decision …"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, rejected, err := ParseSave(c.args)
			if (err != nil) != c.fails {
				t.Fatalf("error %v, want one: %v", err, c.fails)
			}
			if got := strings.Join(rejected, "; "); !strings.Contains(got, c.rejected) || (c.rejected == "") != (got == "") {
				t.Errorf("rejected %q, want %q", got, c.rejected)
			}
			if len(s.Facts) != len(c.facts) {
				t.Fatalf("%d facts %v, want %d", len(s.Facts), s.Facts, len(c.facts))
			}
			for i, f := range s.Facts {
				if got := string(f.Kind) + " " + f.Content; !strings.HasPrefix(got, strings.TrimSuffix(c.facts[i], "…")) || !strings.HasSuffix(c.facts[i], "…") && got != c.facts[i] {
					t.Errorf("fact %q, want %q", got, c.facts[i])
				}
			}
		})
	}
}

// A credential that a fact names is neither stored nor said back.
func TestRefusedCredentialsAreNotRepeated(t *testing.T) {
	t.Parallel()
	_, rejected, err := ParseSave(`{"facts":[{"content":"token = s3cr3tvalue"}]}`)
	if err == nil || strings.Contains(err.Error()+strings.Join(rejected, ""), "s3cr3tvalue") {
		t.Errorf("error %v, rejected %v", err, rejected)
	}
}

// One call stores so many facts; of the rest the model is told.
func TestTooManyFacts(t *testing.T) {
	t.Parallel()
	var contents []string
	for i := range 500 {
		contents = append(contents, fmt.Sprintf("fact %d", i))
	}
	s, rejected, err := ParseSave(facts(contents...))
	if err != nil || len(s.Facts) != MaxFacts || s.Facts[MaxFacts-1].Content != "fact 19" {
		t.Errorf("%d facts, error %v", len(s.Facts), err)
	}
	if len(rejected) != 1 || !strings.Contains(rejected[0], "facts[20]") {
		t.Errorf("rejected %v", rejected)
	}
	if _, rejected, err := ParseSave(facts(contents[:MaxFacts]...)); err != nil || len(rejected) > 0 {
		t.Errorf("exactly so many: rejected %v, error %v", rejected, err)
	}
}

// A call with nothing but credentials is told from one that failed.
func TestOnlyCredentials(t *testing.T) {
	t.Parallel()
	if _, _, err := ParseSave(facts("密码是 hunter2", "token: ghp_16C7e42F292c6912E7")); !errors.Is(err, ErrCredentials) {
		t.Errorf("only credentials: %v", err)
	}
	for _, args := range []string{facts("密码是 hunter2", ""), facts(), `{"facts":[{"content":3}]}`} {
		if _, _, err := ParseSave(args); err == nil || errors.Is(err, ErrCredentials) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// Long facts lose nothing, whatever they hold: every part is short enough, and the parts joined are the text.
func TestLongFactsAreSplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.StringOfN(rapid.RuneFrom([]rune("abc 。.；？!\n中文字")), 1, 3000, 8000).Draw(t, "content")
		args, err := json.Marshal(Save{Facts: []Fact{{Content: content, Kind: KindTask, Subject: " Bob "}}})
		if err != nil {
			t.Fatal(err)
		}
		s, _, err := ParseSave(string(args))
		if strings.TrimSpace(content) == "" {
			if err == nil {
				t.Fatal("a blank fact was taken")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		var joined string
		for _, f := range s.Facts {
			if n := utf8.RuneCountInString(f.Content); n > MaxContent || n == 0 {
				t.Fatalf("a part of %d characters", n)
			}
			if f.Kind != KindTask || f.Subject != "Bob" {
				t.Fatalf("part %+v", f)
			}
			joined += f.Content
		}
		if squeeze(joined) != squeeze(content) {
			t.Fatalf("%q became %q", content, joined)
		}
	})
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

func FuzzSplit(f *testing.F) {
	f.Add("a. b", 3)
	f.Add(strings.Repeat("中。", 50), 7)
	f.Add("", 1)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 1 || limit > 1000 || !utf8.ValidString(text) {
			return
		}
		var joined string
		for _, p := range Split(text, limit) {
			if utf8.RuneCountInString(p) > limit {
				t.Fatalf("part %q is longer than %d", p, limit)
			}
			joined += p
		}
		if squeeze(joined) != squeeze(text) {
			t.Fatalf("%q became %q", text, joined)
		}
	})
}

func TestRoute(t *testing.T) {
	t.Parallel()
	roster := map[string]sessions.UserID{"Alice": "u1", "u1": "u1", "Bob": "u2"}
	private := Chat{Key: "r/p", Robot: "r", Conversation: "p", Private: true, Roster: roster, Person: "u1"}
	group := Chat{Key: "r/g/u1", Robot: "r", Conversation: "g", Roster: roster}
	for _, c := range []struct {
		name    string
		chat    Chat
		kind    Kind
		subject string
		want    string
	}{
		{"own preference", private, KindPreference, "Alice", "user u1 u1"},
		{"own, by id", private, KindProfile, "u1", "user u1 u1"},
		{"own, unnamed", private, KindFact, "", "user u1 u1"},
		{"about another", private, KindProfile, "Bob", "session r/p u2"},
		{"about a stranger", private, KindProfile, "Zoe", "session r/p "},
		{"decision in private", private, KindDecision, "", "session r/p "},
		{"own task", private, KindTask, "Alice", "session r/p u1"},
		{"fact in a group", group, KindFact, "", "group r/g "},
		{"somebody's preference in a group", group, KindPreference, "Alice", "group r/g u1"},
		{"decision in a group", group, KindDecision, "Bob", "group r/g u2"},
		{"task in a group", group, KindTask, "Bob", "session r/g/u1 u2"},
	} {
		d := Route(Fact{Content: "x", Kind: c.kind, Subject: c.subject}, c.chat)
		if got := fmt.Sprintf("%s %s %s", d.Scope, d.ScopeID, d.SubjectID); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// P73, P90: whatever the model labels, what was said in private is read by that person or in that chat alone, and what
// was said in a group goes to no person and to no other conversation.
func TestRouteNeverWidens(t *testing.T) {
	t.Parallel()
	names := rapid.SampledFrom([]string{"", "Alice", "u1", "Bob", "u2", "r/g", "team", "everybody", "../r/x"})
	rapid.Check(t, func(t *rapid.T) {
		f := Fact{Content: "x", Kind: Kind(rapid.SampledFrom([]string{"fact", "profile", "preference", "decision", "task", "team", "group", ""}).Draw(t, "kind")), Subject: names.Draw(t, "subject")}
		c := Chat{Key: "r/c", Robot: "r", Conversation: "c", Private: rapid.Bool().Draw(t, "private"), Person: "u1"}
		c.Roster = map[string]sessions.UserID{"Alice": "u1", "u1": "u1", names.Draw(t, "nick"): "u2"}
		if !c.Private {
			c.Person = ""
		}
		d := Route(f, c)
		switch d.Scope {
		case ScopeUser:
			if !c.Private || d.ScopeID != "u1" {
				t.Fatalf("%+v in %+v goes to %+v", f, c, d)
			}
		case ScopeSession:
			if d.ScopeID != string(c.Key) {
				t.Fatalf("%+v goes to %+v", f, d)
			}
		case ScopeGroup:
			if c.Private || d.ScopeID != GroupID("r", "c") {
				t.Fatalf("%+v in %+v goes to %+v", f, c, d)
			}
		default:
			t.Fatalf("%+v goes to %+v", f, d)
		}
	})
}
