package turn

import (
	"strings"
	"time"

	"ebb/bot/wording"
	"ebb/sessions"
)

const (
	kindAsk     = "ask"     // goes to the model
	kindCommand = "command" // a slash command
	kindHello   = "hello"   // a mention without text
	kindQuota   = "quota"   // DingTalk withheld the content
	kindStale   = "stale"   // too old to be answered without asking
	kindDead    = "dead"    // failed too often
	kindLimited = "limited" // over a limit
	kindRemind  = "remind"  // the text of a reminder, or that it was missed
	kindMissed  = "missed"  // a scheduled question whose time passed too long ago
)

const maxBroken = 3

type plan struct {
	Kind string
	Take int
}

// triage takes the oldest messages of one kind, up to half of a request. A message that stops those before it is not
// answered with them.
func (r *Runner) triage(pending []sessions.Event, usable int, now time.Time) plan {
	if len(pending) == 0 {
		return plan{}
	}
	p := plan{Kind: r.kindOf(pending[0], now)}
	budget := usable / 2
	for i, e := range pending {
		if r.kindOf(e, now) != p.Kind || i > 0 && (p.Kind == kindCommand || p.Kind == kindDead || p.Kind == kindAsk && standsAlone(r.handler, e, pending[:i])) {
			break
		}
		if budget -= e.Tokens; budget < 0 && i > 0 {
			break
		}
		p.Take = i + 1
	}
	return p
}

// standsAlone reports whether a question is not answered with those before it. A scheduled one stays apart from people's
// questions, which may be stopped or may set schedules.
func standsAlone(c Commands, e sessions.Event, before []sessions.Event) bool {
	return e.IsScheduled() || before[0].IsScheduled() || len(c.Stops(e, before)) > 0
}

func (r *Runner) kindOf(e sessions.Event, now time.Time) string {
	switch {
	case e.Attempts >= maxBroken:
		return kindDead
	case e.IsScheduled():
		return r.kindOfScheduled(*e.Message.Scheduled, now)
	case now.Sub(e.CreatedAt) > r.cfg.StaleAfter:
		return kindStale
	case e.Message != nil && e.Message.OverQuota:
		return kindQuota
	case strings.TrimSpace(e.Content) == "":
		return kindHello
	case r.views.IsCommand(e):
		return kindCommand
	}
	return kindAsk
}

func (p plan) fixedAnswer(asked []sessions.Event, lang string, loc *time.Location) string {
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

// kindOfScheduled is the kind of a turn that answers a scheduled message. Its time decides, not that of its storage.
func (r *Runner) kindOfScheduled(s sessions.Scheduled, now time.Time) string {
	switch {
	case s.Kind == sessions.Remind:
		return kindRemind
	case isMissed(s, now, r.cfg.StaleAfter):
		return kindMissed
	}
	return kindAsk
}
