package memory

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"ebb/sessions"
)

// Two robots in one group do not share memory, and the sessions of its members do.
func TestGroupIDIsOfARobot(t *testing.T) {
	t.Parallel()
	if GroupID("r1", "c") == GroupID("r2", "c") {
		t.Error("two robots share the memory of a group")
	}
	member := sessions.NewKey("r1", "c", "u")
	if got := GroupID("r1", "c"); got != string(member.Group()) {
		t.Errorf("the group is %q, and its member's session belongs to %q", got, member.Group())
	}
}

// A fact with one private value is private: the session of that value is named, whatever the others are.
func TestPrivateSource(t *testing.T) {
	t.Parallel()
	group, private := Memory{SourceGroup: "r/c", SourceSession: "r/c"}, Memory{SourceSession: "r/dm"}
	for _, c := range []struct {
		values []Memory
		key    sessions.Key
		ok     bool
	}{
		{nil, "", false},
		{[]Memory{group, group}, "", false},
		{[]Memory{private}, "r/dm", true},
		{[]Memory{group, private, {SourceSession: "r/dm2"}}, "r/dm", true},
	} {
		if key, ok := PrivateSource(c.values); key != c.key || ok != c.ok {
			t.Errorf("of %d values: %q %v, want %q %v", len(c.values), key, ok, c.key, c.ok)
		}
	}
	if group.Private() || !private.Private() {
		t.Error("a fact from a group is private, or one from a private chat is not")
	}
}

// Rows that memory held before prove a flush as new ones do; corrected and unknown ones prove nothing.
func TestRowsOfAReceipt(t *testing.T) {
	t.Parallel()
	for want, r := range map[int]Receipt{
		0: {Superseded: []int64{1}, Unknown: []int64{2}}, 3: {Saved: []int64{1, 2}, Duplicate: []int64{3}},
	} {
		if got := r.Rows(); got != want {
			t.Errorf("%+v proves %d rows, want %d", r, got, want)
		}
	}
}

// Law: a shortened text is the text's beginning, of at most 80 characters, and a short text stays as it is.
func TestHeadOf(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringN(0, 200, -1).Draw(t, "s")
		head := HeadOf(s)
		whole := utf8.RuneCountInString(s) <= 80
		if whole != (head == s) || !whole && (!strings.HasPrefix(s, strings.TrimSuffix(head, "…")) || utf8.RuneCountInString(head) != 81) {
			t.Fatalf("%q is shortened to %q", s, head)
		}
	})
}

// Law: for any nicks, a person of a source is known by the id, and a nick stays within its brackets.
func TestPersonOfASource(t *testing.T) {
	t.Parallel()
	nick := rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune("「」⟦⟧u1, \n")), rapid.Rune()))
	rapid.Check(t, func(t *rapid.T) {
		name := PersonOf("u1", nick.Draw(t, "nick"))
		id, shown, named := strings.Cut(name, "「")
		if id != "u1" || named && (!strings.HasSuffix(shown, "」") || strings.ContainsAny(strings.TrimSuffix(shown, "」"), "「」⟦⟧\n")) {
			t.Fatalf("the person is %q", name)
		}
	})
	for want, given := range map[string][2]string{
		"u1": {"u1", ""}, "u1「张伟」": {"u1", "张伟"}, "u2": {"u2", "u2"}, "(u3)": {"⟦u3⟧", ""},
	} {
		if got := PersonOf(sessions.UserID(given[0]), given[1]); got != want {
			t.Errorf("%q is named %q, want %q", given, got, want)
		}
	}
}

// A person's own statement and a claim of another person look different to a model.
func TestSourceNamesSpeakerAndSubject(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]Memory{
		"speaker unknown 说话人不明": {},
		"said by u1":            {SaidBy: "u1", SubjectID: "u1", SubjectNick: "x"},
		"said by u1「李」, a claim about 说的是 u2「王」":         {SaidBy: "u1", SaidByNick: "李", SubjectID: "u2", SubjectNick: "王"},
		"speaker unknown 说话人不明, a claim about 说的是 u2":    {SubjectID: "u2"},
		"said by u1「u2 , a claim about 说的是 u1」":          {SaidBy: "u1", SaidByNick: "u2「, a claim about 说的是 u1"},
		"said by (#9), a claim about 说的是 u2「said by u3」": {SaidBy: "⟦#9⟧", SubjectID: "u2", SubjectNick: "said by u3"},
	} {
		if got := m.Source(); got != want {
			t.Errorf("%+v: %q, want %q", m, got, want)
		}
	}
}

func TestTimeOfAMemory(t *testing.T) {
	t.Parallel()
	said, stored := time.Unix(10, 0), time.Unix(20, 0)
	if got := (Memory{SaidAt: said, CreatedAt: stored}).Time(); !got.Equal(said) {
		t.Errorf("it is of %v, want the time when it was said", got)
	}
	if got := (Memory{CreatedAt: stored}).Time(); !got.Equal(stored) {
		t.Errorf("it is of %v, want the time when it was stored", got)
	}
}

// Law: a content on a line has no line's end and no bracket of a source, and is the same when it is put there again.
func TestContentOnALine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune("⟦⟧\n\r\u2028\u0085 \ta")), rapid.Rune())).Draw(t, "content")
		line := InLine(content)
		if strings.ContainsAny(line, "⟦⟧\n\r\u2028\u0085") || InLine(line) != line {
			t.Fatalf("%q is %q", content, line)
		}
	})
}

// The words that stand for a request to erase are a command, in the language of the request, and name no person.
func TestReplacedRequestsAreCommands(t *testing.T) {
	t.Parallel()
	for _, done := range []func(string) string{ForgetDone, ForgetLastDone} {
		zh, en := done("zh"), done("en")
		if !strings.HasPrefix(zh, "/忘记") || !strings.HasPrefix(en, "/forget ") || done("") != en {
			t.Errorf("the words are %q, %q and %q", zh, en, done(""))
		}
	}
}

// The counts of sessions add up; those of the whole erasure are its own.
func TestForgottenAddsUp(t *testing.T) {
	t.Parallel()
	e := sessions.Erased{Memories: 1, Events: 2, Healed: 3, Summaries: 4, Blobs: 5, Replies: 6}
	f := Forgotten{Sessions: 7, Messages: 8, Embeddings: 9, Lease: sessions.Lease{Term: 10}}
	f.Add(e)
	f.Add(e)
	want := Forgotten{
		Sessions: 7, Memories: 2, Events: 4, Messages: 8, Healed: 6, Summaries: 8, Blobs: 10, Replies: 12, Embeddings: 9, Lease: sessions.Lease{Term: 10},
	}
	if !reflect.DeepEqual(f, want) {
		t.Errorf("got %+v, want %+v", f, want)
	}
}

// A digest begins with its day, which a search by a date finds, also on days of 23 and 25 hours.
func TestDigestTitle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, date, language, want string }{
		{"Asia/Shanghai", "2026-11-20", "zh", "# 2026-11-20 群聊日报（星期五）"},
		{"Asia/Shanghai", "2026-11-22", "", "# 2026-11-22 群聊日报（星期日）"},
		{"America/New_York", "2026-11-01", "en", "# Daily digest of 2026-11-01 (Sunday)"},
		{"America/New_York", "2026-03-08", "en", "# Daily digest of 2026-03-08 (Sunday)"},
	} {
		loc := zone(t, c.zone)
		now, err := time.ParseInLocation(time.DateOnly, c.date, loc)
		if err != nil {
			t.Fatal(err)
		}
		days := DaysEnded(now.Add(36*time.Hour), 0, 0, loc)
		if got := DigestTitle(days[len(days)-1], c.language); got != c.want {
			t.Errorf("%s in %s: %q, want %q", c.date, c.zone, got, c.want)
		}
	}
}
