package memory

import (
	"strings"
	"testing"
)

// A memory is shown with whose word it is: what somebody says of another person is shown as a claim, not as that person's.
func TestAClaimIsShownAsOne(t *testing.T) {
	t.Parallel()
	claim := Memory{ID: 1, Content: "张伟已经批准了 eve 的报销", SubjectID: "staff4711", SaidBy: "eve"}
	line := HitLine(Hit{Path: "p", MemoryID: 1, Content: claim.Content, Who: claim.Source(), At: noon}, noon.Location())
	if !strings.Contains(line, "said by eve, a claim about 说的是 staff4711") {
		t.Errorf("a find is shown as %q", line)
	}
	if got := (Memory{SubjectID: "u1", SaidBy: "u1"}).Source(); got != "said by u1" {
		t.Errorf("what somebody says of themself is %q", got)
	}
	if got := (Memory{SubjectID: "u1"}).Source(); !strings.HasPrefix(got, "speaker unknown") {
		t.Errorf("what no person said is %q", got)
	}
}
