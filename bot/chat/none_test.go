package chat

import (
	"testing"

	"ebb/sessions"
)

// The values of features that are off offer nothing, show nothing, and hold no turn up.
func TestValuesOfFeaturesThatAreOff(t *testing.T) {
	t.Parallel()
	var tools Toolbox = NoTools{}
	if all, away := tools.Tools("c", sessions.Group), tools.Away("c", sessions.Group); len(all)+len(away) > 0 || tools.Version() != 0 || tools.MaxResultTokens("x__y") != 0 {
		t.Errorf("tools %v, servers away %v", all, away)
	}
	var display Display = NoDisplay{}
	if live := display.Show(t.Context(), Shown{}); live != nil {
		t.Errorf("a turn is shown on %v", live)
	}
	for name, ok := range map[string]bool{"Acknowledger": is[Acknowledger](display), "Queuer": is[Queuer](display)} {
		if ok {
			t.Errorf("it is a %s: each waiting turn would be looked at for it", name)
		}
	}
	var receiver Receiver = NoReceiver{}
	receiver.AwaitReceived(t.Context(), "c")
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}
