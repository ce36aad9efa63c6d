package schedule

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"ebb/bot/schedule/when"
	"ebb/bot/wording"
	"ebb/sessions"
)

const (
	// MinPeriod is the least time between two times of a schedule: each is a call of the month. MinAskPeriod is that of
	// questions, which the model answers too.
	MinPeriod    = 30 * time.Minute
	MinAskPeriod = time.Hour
	// MaxText bounds the text of a schedule in characters.
	MaxText = 1000
	// shownDates is the number of coming times that people read.
	shownDates = 3
	// checkedTimes is the number of coming times that are compared with the least period.
	checkedTimes = 50
)

// The refusals of a schedule. Others are those of package when and of [sessions.Schedules].
var (
	ErrOff         = errors.New("reminders are switched off")
	ErrNoText      = errors.New("the text is missing")
	ErrLongText    = errors.New("the text is too long")
	ErrOften       = errors.New("two times are less than 30 minutes apart")
	ErrOftenAsked  = errors.New("two times of a question are less than an hour apart")
	ErrEnded       = errors.New("all times are past")
	ErrUnreachable = errors.New("the bot can't begin a private chat with the person")
	ErrNested      = errors.New("a scheduled message sets no schedules")
)

// Settings are the settings of the configuration.
type Settings struct {
	Enabled bool
	Quiet   when.Quiet // hours in which only single reminders are sent
}

// Calls is the budget of messages that no question brought a webhook for.
type Calls interface {
	MonthEnd() time.Time // end of the present month
	// Promise returns [sessions.ErrNoCalls] or [sessions.ErrCallShare] where the month does not reach for them.
	Promise(ctx context.Context, p sessions.CallPromise) error
}

// Uncounted are [Calls] without a bound, as of a terminal.
type Uncounted struct{}

// MonthEnd implements [Calls]: no time is within a counted month.
func (Uncounted) MonthEnd() time.Time { return time.Time{} }

// Promise implements [Calls].
func (Uncounted) Promise(context.Context, sessions.CallPromise) error { return nil }

// Planner sets and changes schedules.
type Planner struct {
	Calls    Calls
	Store    sessions.Schedules
	Location *time.Location
	Settings func() Settings // in force
}

// Request is a new schedule.
type Request struct {
	When   string // a phrase of a time; without a Text, further words are the text
	Text   string
	Kind   sessions.ScheduleKind
	By     sessions.Event // the message that asks for it
	Origin string         // see [sessions.Schedule]
	Now    time.Time
}

// Planned is a schedule with its coming times, at most three.
type Planned struct {
	sessions.Schedule
	Spec  when.Spec
	Dates []time.Time
}

// Times describes all times in a language, zh or en.
func (p Planned) Times(lang string) string { return p.Spec.Words(lang) }

// StoredTimes describes stored times in a language, zh or en. Unreadable ones stay as they are.
func StoredTimes(stored, lang string) string {
	spec, err := when.Read(stored)
	if err != nil {
		return stored
	}
	return spec.Words(lang)
}

// Coming joins the coming times.
func (p Planned) Coming(separator string) string {
	times := make([]string, len(p.Dates))
	for i, at := range p.Dates {
		times[i] = wording.Moment(at)
	}
	return strings.Join(times, separator)
}

// Set stores a schedule under the lease of the turn that asks for it.
func (p *Planner) Set(ctx context.Context, l sessions.Lease, r Request) (Planned, error) {
	spec, due, rest, err := p.read(r.When, r.Kind, r.Now)
	if err != nil {
		return Planned{}, err
	}
	text, rest := strings.TrimSpace(r.Text), strings.TrimSpace(rest)
	if text == "" {
		text, rest = rest, ""
	}
	creator, err := creatorOf(r.By)
	switch {
	case err != nil:
		return Planned{}, err
	case rest != "":
		return Planned{}, when.ErrUnknown // "every day at 9 until Friday" would never end
	case text == "":
		return Planned{}, ErrNoText
	case utf8.RuneCountInString(text) > MaxText:
		return Planned{}, ErrLongText
	}
	// A repeated attempt asks for nothing: the first one has its place and its calls.
	switch s, err := p.Store.ScheduleOfOrigin(ctx, l.Key, r.Origin); {
	case err == nil:
		return p.planned(s), nil
	case !errors.Is(err, sessions.ErrNotFound):
		return Planned{}, err
	}
	if m := r.By.Message; hasWebhook(spec, due, *m) {
		creator.Webhook, creator.WebhookExpires = m.Webhook, m.WebhookExpires // it takes no call, whatever process sends it
	} else if err := p.promise(ctx, spec, due, creator, sessions.Schedule{}); err != nil {
		return Planned{}, err
	}
	s, err := p.Store.AddSchedule(ctx, l, sessions.Schedule{
		Kind: r.Kind, DueAt: due, Spec: spec.String(), Text: text, Creator: creator, Origin: r.Origin,
	})
	if err != nil {
		return Planned{}, err
	}
	return p.planned(s), nil
}

// Move gives an active schedule other times, under the lease of the turn that asks for it. The caller has checked the right to it.
func (p *Planner) Move(ctx context.Context, l sessions.Lease, moved sessions.Schedule, phrase string, now time.Time) (Planned, error) {
	spec, due, rest, err := p.read(phrase, moved.Kind, now)
	if err != nil {
		return Planned{}, err
	}
	if strings.TrimSpace(rest) != "" {
		return Planned{}, when.ErrUnknown
	}
	if !hasWebhook(spec, due, moved.Creator) {
		if err := p.promise(ctx, spec, due, moved.Creator, moved); err != nil {
			return Planned{}, err
		}
	}
	s, err := p.Store.MoveSchedule(ctx, l, moved, spec.String(), due)
	if err != nil {
		return Planned{}, err
	}
	return p.planned(s), nil
}

// Active returns the active schedules of a session's conversation that pass seen, the next due first.
func (p *Planner) Active(ctx context.Context, key sessions.Key, seen func(sessions.Schedule) bool) ([]Planned, error) {
	list, err := p.Store.ActiveSchedules(ctx, key)
	if err != nil {
		return nil, err
	}
	var planned []Planned
	for _, s := range list {
		if seen(s) {
			planned = append(planned, p.planned(s))
		}
	}
	return planned, nil
}

// read reads the phrase at the beginning of a text. now is the time to which the phrase refers.
func (p *Planner) read(phrase string, kind sessions.ScheduleKind, now time.Time) (spec when.Spec, due time.Time, rest string, err error) {
	if !p.Settings().Enabled {
		return spec, due, "", ErrOff
	}
	now = now.In(p.Location)
	if spec, rest, err = when.Parse(strings.TrimSpace(phrase), now); err != nil {
		return spec, due, "", err
	}
	due, ok := spec.Next(now)
	if !ok {
		return spec, due, "", ErrEnded
	}
	if kind == sessions.AskModel && isOften(spec, due, MinAskPeriod) {
		return spec, due, "", ErrOftenAsked
	}
	if isOften(spec, due, MinPeriod) {
		return spec, due, "", ErrOften
	}
	return spec, due, rest, nil
}

// hasWebhook reports whether the webhook of a message outlasts the time of a single reminder, which then takes no call.
func hasWebhook(spec when.Spec, due time.Time, m sessions.Message) bool {
	return !spec.Repeats() && due.Before(m.WebhookExpires.Add(-sessions.WebhookMargin))
}

// promise asks whether the present month has calls for the times of a schedule, beside those of the other active ones. The times of
// replaced are given back; its zero value: none. Later months have all their calls.
func (p *Planner) promise(ctx context.Context, spec when.Spec, due time.Time, creator sessions.Message, replaced sessions.Schedule) error {
	end := p.Calls.MonthEnd()
	if !due.Before(end) {
		return nil
	}
	outstanding, err := p.Store.OutstandingSchedules(ctx, creator.RobotCode, creator.SenderID, end)
	if err != nil {
		return err
	}
	back := timesOf(replaced, end)
	promised := sessions.CallPromise{Robot: creator.RobotCode, Person: cmp.Or(creator.StaffID, creator.SenderID), Calls: times(spec, due, end), All: -back, Own: -back}
	for _, o := range outstanding {
		n := timesOf(sessions.Schedule{Spec: o.Spec, DueAt: o.DueAt}, end)
		promised.All, promised.Own = promised.All+n*o.All, promised.Own+n*o.Own
	}
	promised.All, promised.Own = max(0, promised.All), max(0, promised.Own)
	return p.Calls.Promise(ctx, promised)
}

// timesOf counts the times of a schedule before end that take a call. A stored spec that is empty or unreadable has one.
func timesOf(s sessions.Schedule, end time.Time) int {
	spec, _ := when.Read(s.Spec)
	if hasWebhook(spec, s.DueAt, s.Creator) {
		return 0
	}
	return times(spec, s.DueAt, end)
}

func times(spec when.Spec, due, end time.Time) (n int) {
	if due.IsZero() {
		return 0
	}
	for at, ok := due, true; ok && at.Before(end); at, ok = spec.Next(at) {
		n++
	}
	return n
}

// isOften reports whether two of the coming times are closer than least.
func isOften(spec when.Spec, due time.Time, least time.Duration) bool {
	for range checkedTimes {
		next, ok := spec.Next(due)
		if !ok {
			return false
		}
		if next.Sub(due) < least {
			return true
		}
		due = next
	}
	return false
}

// creatorOf returns the parts of a message that later messages repeat. Rights of an administrator are not among them.
func creatorOf(e sessions.Event) (sessions.Message, error) {
	m := e.Message
	switch {
	case m == nil:
		return sessions.Message{}, ErrUnreachable
	case m.Scheduled != nil:
		return sessions.Message{}, ErrNested
	case m.ConversationType == sessions.Private && (m.StaffID == "" || m.External): // a staff id of elsewhere may be a member's
		return sessions.Message{}, ErrUnreachable
	}
	return sessions.Message{
		RobotCode: m.RobotCode, ConversationID: m.ConversationID, ConversationType: m.ConversationType, Organization: m.Organization, Kind: "text",
		SenderID: m.SenderID, StaffID: m.StaffID, EncryptedID: m.EncryptedID, External: m.External, SenderNick: m.SenderNick,
	}, nil
}

func (p *Planner) planned(s sessions.Schedule) Planned {
	planned := Planned{Schedule: s, Dates: []time.Time{s.DueAt.In(p.Location)}}
	spec, err := when.Read(s.Spec)
	if err != nil {
		return planned // the runner ends it
	}
	planned.Spec = spec
	for len(planned.Dates) < shownDates {
		next, ok := spec.Next(planned.Dates[len(planned.Dates)-1])
		if !ok {
			break
		}
		planned.Dates = append(planned.Dates, next.In(p.Location))
	}
	return planned
}
