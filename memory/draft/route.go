package draft

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"ebb/memory"
	"ebb/memory/classify"
	"ebb/memory/dates"
	"ebb/memory/reconcile"
	"ebb/memory/text"
	"ebb/sessions"
)

// Route decides readers, speaker, source and time of the facts that a model wants to keep. refused has the
// reasons against facts that may not be kept.
//
// In a private chat people's statements about themselves follow them, and the rest stays in that chat. In a group
// statements about oneself are the speaker's and read in this group only; all others are the group's. The state of
// work is the session's for a while, and so is a fact that only a quote, a tool or the model stated. A wish about
// answers is its author's preference, whatever a model calls it, and never a rule for others.
func Route(facts []memory.Fact, c Chat) (drafts []memory.Draft, refused []string) {
	drafts, faults := RouteFacts(facts, c)
	for _, f := range faults {
		refused = append(refused, f.Why)
	}
	return drafts, refused
}

// RouteFacts is [Route] with the kind of each refusal.
func RouteFacts(facts []memory.Fact, c Chat) (drafts []memory.Draft, refused []classify.Refusal) {
	ev := readSources(c)
	for _, f := range facts {
		d, s := draftOf(f, c, ev)
		smallTalk := classify.RefuseChatter(f.Content, c.Roster)
		switch personal := isPersonal(f); {
		case personal && !c.Private:
			refused = append(refused, classify.Refusal{Why: fmt.Sprintf("%q: personal data such as health, pay, ID numbers or a home address is not stored in groups", memory.HeadOf(f.Content)), Kind: classify.Personal})
			continue
		case personal && !ev.asksToRemember(s):
			refused = append(refused, classify.Refusal{Why: fmt.Sprintf("%q: personal data such as health, pay, ID numbers or a home address is stored only where the person asks to remember it", memory.HeadOf(f.Content)), Kind: classify.Personal})
			continue
		case smallTalk.Why != "":
			refused = append(refused, classify.Refusal{Why: fmt.Sprintf("%q: %s", memory.HeadOf(f.Content), smallTalk.Why), Kind: smallTalk.Kind})
			continue
		}
		// A date that is added may make a content too long.
		for i, part := range text.Split(dates.Resolve(f.Content, d.SaidAt), memory.MaxContent) {
			one := d
			if one.Content = part; i > 0 {
				one.Key, one.Replaces = "", 0
			}
			drafts = append(drafts, one)
		}
	}
	return drafts, refused
}

// Fields count together: the content may hold an amount, and the key say that it is pay.
func isPersonal(f memory.Fact) bool {
	of := strings.TrimSpace(f.Subject + " " + f.Key)
	return classify.Sensitive(f.Content) || classify.Sensitive(of) || of != "" && classify.Sensitive(of+": "+f.Content)
}

// draftOf finds the speaker of a fact in the messages, and not in the model's words, and decides who may read it. In doubt the fact
// stays in its session: a scope that is too narrow loses a find, one that is too wide leaks.
func draftOf(f memory.Fact, c Chat, ev sourceTexts) (memory.Draft, factSource) {
	s := ev.findSource(f.Content, c.Roster[f.By])
	f, style := asAnswerStyle(f, c, s.who)
	d := memory.Draft{
		Kind: f.Kind, Content: f.Content, Key: keyFor(f, c), Replaces: f.Replaces, SubjectID: c.Roster[f.Subject],
		SubjectIsValue: reconcile.IsValue(f.Subject, f.Content, f.Key),
		SaidBy:         s.who, SaidAt: s.at, StartSeq: s.start, EndSeq: s.end,
	}
	if n := len(c.Said); d.SaidAt.IsZero() && n > 0 {
		d.SaidAt = c.Said[n-1].CreatedAt // no later than that
	}
	if d.SaidAt.IsZero() {
		d.SaidAt = time.Now()
	}
	if c.Location != nil {
		d.SaidAt = d.SaidAt.In(c.Location)
	} else {
		d.SaidAt = d.SaidAt.UTC()
	}
	if !c.Private {
		d.SourceGroup = memory.GroupID(c.Robot, c.Conversation)
	}
	d.Scope, d.ScopeID = memory.ScopeSession, string(c.Key)
	switch {
	case f.Kind == memory.KindTask:
		d.ExpiresAt = expiryOf(d, c)
	case s.found && s.voice != own, !s.found && (ev.foreign || c.Retold != nil && !ev.outweighsRetold(f.Content, c.Retold)):
		// Unknown people said it, or a stranger.
	case c.Private:
		if aboutPerson(d, f, c) {
			d.SubjectID = c.Person
			d.Scope, d.ScopeID = memory.ScopeUser, string(c.Person)
		}
	case style && s.who == "": // the author of the wish is unknown
	case style:
		d.SubjectID = s.who
		d.Scope, d.ScopeID = memory.ScopeUser, string(s.who)
	case d.SubjectID != "" && d.SubjectID == s.who && f.Kind != memory.KindDecision && classify.SelfReference(s.text):
		d.Scope, d.ScopeID = memory.ScopeUser, string(s.who)
	default:
		d.Scope, d.ScopeID = memory.ScopeGroup, memory.GroupID(c.Robot, c.Conversation)
	}
	return d, s
}

func aboutPerson(d memory.Draft, f memory.Fact, c Chat) bool {
	return c.Person != "" && f.Kind != memory.KindDecision && (f.Subject == "" || d.SubjectID == c.Person) &&
		(d.SaidBy == "" || d.SaidBy == c.Person)
}

// A person without a known id is a part of the key, except as a value: owners of one thing share a key.
func keyFor(f memory.Fact, c Chat) string {
	key := text.NormalizeKey(f.Key)
	if key == "" || f.Subject == "" || c.Roster[f.Subject] != "" || reconcile.IsValue(f.Subject, f.Content, f.Key) {
		return key
	}
	return text.NormalizeKey(f.Subject + " " + f.Key)
}

var dayForm = regexp.MustCompile(`\d{4}-\d{2}-\d{2}`)

// The TTL begins at the statement, or at the last day that it names within a year.
func expiryOf(d memory.Draft, c Chat) time.Time {
	ttl := c.TaskTTL
	if ttl <= 0 {
		ttl = DefaultTaskTTL
	}
	last := d.SaidAt
	year := last.AddDate(1, 0, 0)
	for _, day := range dayForm.FindAllString(dates.Resolve(d.Content, last), -1) {
		if at, err := time.ParseInLocation(time.DateOnly, day, last.Location()); err == nil && at.After(last) && at.Before(year) {
			last = at
		}
	}
	return last.Add(ttl)
}

// A wish that names another person is no preference of its speaker.
func asAnswerStyle(f memory.Fact, c Chat, who sessions.UserID) (memory.Fact, bool) {
	if !classify.AnswerStyle(f.Content) {
		return f, false
	}
	if id := c.Roster[f.Subject]; f.Subject != "" && (id == "" || who != "" && id != who) {
		return f, false
	}
	terms := text.Terms(text.Tokenize(f.Content))
	for name, id := range c.Roster {
		if id != who && who != "" && text.Within(text.Terms(text.Tokenize(name)), terms) {
			return f, false
		}
	}
	f.Kind = memory.KindPreference
	return f, true
}
