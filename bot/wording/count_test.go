package wording

import "testing"

func TestCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		format string
		args   []any
		want   string
	}{
		{"%d message{|s}", []any{1}, "1 message"},
		{"%d message{|s}", []any{0}, "0 messages"},
		{"%d message{|s}", []any{int64(21)}, "21 messages"},
		{"%s token{|s}", []any{"1"}, "1 token"},
		{"%s token{|s} (%d%%)", []any{"1,001", 1}, "1,001 tokens (1%)"},
		{"%d%% of %d summar{y|ies} {is|are} there, %d fact{|s} {is|are} not", []any{1, 2, 1}, "1% of 2 summaries are there, 1 fact is not"},
		{"%[2]d of %[1]d event{|s}", []any{1, 5}, "5 of 1 event"},
		{"%s: no mark", []any{"{1|2}"}, "{1|2}: no mark"},
		{"%d row{|s} of %s", []any{1, "{a|b}"}, "1 row of {a|b}"},
	} {
		if got := Count(c.format, c.args...); got != c.want {
			t.Errorf("%q with %v is %q, want %q", c.format, c.args, got, c.want)
		}
	}
	for n, want := range map[any]string{1: "flush owed", "1 ": "flush owed", 2: "flushes owed", "": "flushes owed"} {
		if got := Form("flush{|es} owed", n); got != want {
			t.Errorf("with %v the form is %q, want %q", n, got, want)
		}
	}
}
