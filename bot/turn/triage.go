package turn

import (
	"strings"
	"time"

	"ebb/bot/wording"
	"ebb/sessions"
)

// The kinds of turns.
const (
	kindAsk     = "ask"     // goes to the model
	kindCommand = "command" // a slash command
	kindHello   = "hello"   // the robot was mentioned, and nothing said
	kindQuota   = "quota"   // DingTalk withheld the content
	kindStale   = "stale"   // waited too long to be answered blindly
	kindDead    = "dead"    // broke its turn too often
)

// MaxBroken is how many turns a message may break before it is set aside.
const MaxBroken = 3

// plan says how many of the waiting messages a turn takes, and as what.
type plan struct {
	Kind string
	Take int
}

// Triage sorts the waiting messages from the oldest on: the turn takes as many as go together, in half of what a request
// may hold.
func (r *Runner) Triage(pending []sessions.Event, usable int, now time.Time) plan {
	if len(pending) == 0 {
		return plan{}
	}
	p := plan{Kind: r.kindOf(pending[0], now)}
	budget := usable / 2
	for i, e := range pending {
		if r.kindOf(e, now) != p.Kind || i > 0 && (p.Kind == kindCommand || p.Kind == kindDead) {
			break
		}
		if budget -= e.Tokens; budget < 0 && i > 0 {
			break
		}
		p.Take = i + 1
	}
	return p
}

func (r *Runner) kindOf(e sessions.Event, now time.Time) string {
	switch {
	case e.Attempts >= MaxBroken:
		return kindDead
	case now.Sub(e.CreatedAt) > r.cfg.StaleAfter:
		return kindStale
	case e.Message != nil && e.Message.OverQuota:
		return kindQuota
	case strings.TrimSpace(e.Content) == "":
		return kindHello
	case wording.IsCommand(r.views.OwnWords(e)):
		return kindCommand
	}
	return kindAsk
}

// word is the fixed answer of a turn that asks no model.
func (p plan) word(asked []sessions.Event, lang string, loc *time.Location) string {
	at := asked[0].CreatedAt.In(loc).Format("01-02 15:04")
	switch p.Kind {
	case kindDead:
		return wording.Say(wording.Dead, lang, at)
	case kindStale:
		return wording.Say(wording.Stale, lang, at)
	case kindQuota:
		return wording.Say(wording.OverQuota, lang)
	}
	return wording.Say(wording.Here, lang)
}
