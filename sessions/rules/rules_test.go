package rules

import (
	"slices"
	"testing"
)

func TestARuleHasListColumnsExamplesAndExpression(t *testing.T) {
	t.Parallel()
	f := Read("# comment\npart\tday\t(?:mon|tue)\nweek\tx\ty\ton mon\ton sun\ton {day}\nweek\tall\tnone\t^\\x20?all$\n")
	want := []Rule{
		{List: "week", Columns: []string{"x", "y"}, Match: "on mon", Miss: "on sun", Expr: `on\s*(?:mon|tue)`},
		{List: "week", Columns: []string{}, Match: "all", Miss: "none", Expr: `^\x20?all$`},
	}
	same := func(a, b Rule) bool {
		return a.List == b.List && slices.Equal(a.Columns, b.Columns) && a.Match == b.Match && a.Miss == b.Miss && a.Expr == b.Expr
	}
	if !slices.EqualFunc(f.All(), want, same) {
		t.Errorf("%+v, want %+v", f.All(), want)
	}
	re := f.Regexp("week")()
	for text, matches := range map[string]bool{"on   tue": true, " all": true, "  all": false, "on sun": false} {
		if re.MatchString(text) != matches {
			t.Errorf("%q matches: %v", text, !matches)
		}
	}
	if each := f.Each("week")(); len(each) != 2 || !each[1].MatchString("all") || each[0].MatchString("all") {
		t.Errorf("each rule: %v", each)
	}
}

// A flag at the head of a rule is that rule's alone.
func TestFlagsOfARuleDoNotReachTheNext(t *testing.T) {
	t.Parallel()
	re := Read("a\tX\ty\t(?i)x\na\tz\tZ\tz\n").Regexp("a")()
	if !re.MatchString("X") || re.MatchString("Z") {
		t.Errorf("%s ignores case in its second rule", re)
	}
}

func TestAListWithoutRulesIsAMistake(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a list without rules was accepted")
		}
	}()
	Read("a\tx\ty\tx\n").Regexp("b")()
}
