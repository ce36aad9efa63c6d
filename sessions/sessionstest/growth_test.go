package sessionstest_test

import (
	"fmt"
	"strings"
	"testing"

	"ebb/sessions/sessionstest"
)

type complaints struct {
	testing.TB
	all []string
}

func (c *complaints) Errorf(format string, args ...any) {
	c.all = append(c.all, fmt.Sprintf(format, args...))
}

// On a busy machine, too, quadratic work is found and proportional work is not.
func TestGrowth(t *testing.T) {
	sum := 0
	read := func(s string) {
		for i := range len(s) {
			sum += int(s[i])
		}
	}
	for name, c := range map[string]struct {
		work func(text string)
		want bool
	}{
		"in proportion": {func(s string) {
			for range 500 {
				read(s)
			}
		}, false},
		"quadratic": {func(s string) {
			for i := range s {
				if s[0] != 'a' {
					return // one letter shows it
				}
				read(s[i:])
			}
		}, true},
	} {
		got := &complaints{TB: t}
		sessionstest.CheckGrowth(got, name, 16<<10, c.work)
		if (len(got.all) > 0) != c.want {
			t.Errorf("%s: %d complaints, want any: %v\n%s", name, len(got.all), c.want, strings.Join(got.all, "\n"))
		}
	}
}
