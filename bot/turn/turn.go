package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/gate"
	"ebb/bot/turn/answer"
	"ebb/bot/turn/choice"
	"ebb/bot/turn/persist"
	"ebb/bot/turn/slot"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/memory/classify"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// RunTurn is steps 3 to 8 of a message's path. more reports whether messages still wait.
func (r *Runner) RunTurn(ctx context.Context, key sessions.Key) (more bool, err error) {
	if !r.shared.Leases.Trusted() {
		return false, slot.ErrHeartbeat
	}
	r.slots.Show(ctx, key)
	r.slots.Gathering.Await(ctx, key)
	defer r.shared.Current.Pin(key)()
	for rest := new(slot.Rest); rest != nil; {
		more, rest, err = r.turn(ctx, key, *rest)
	}
	return more, err
}

// The ends of a turn without a commit.
var (
	errPanic = errors.New("panic")
	errAside = errors.New("the place beside the slots is for a turn that is stopped")
)

// turn goes from a slot to a choice, an answer and a commit. again is set if another turn begins at once, for messages that this one
// left.
func (r *Runner) turn(ctx context.Context, key sessions.Key, rest slot.Rest) (more bool, again *slot.Rest, err error) {
	defer func() { err = r.shared.Leases.Check(key, err) }()

	// Steps 3 and 4: a slot, with the waiting messages under a lease.
	lease, err := r.slots.Lease(ctx, key)
	if err != nil || r.outbox.Backpressured(key) {
		return false, nil, err
	}
	ctx = llm.WithWaiter(ctx, key)
	defer r.slots.Running.Enter(key)() // before the view is read: each later message is noted
	place, err := r.slots.Take(ctx, lease, rest)
	defer place.Leave()
	if errors.Is(err, llm.ErrStop) {
		return true, nil, nil // the next owner answers the messages in the log
	}
	if err != nil {
		return false, nil, err
	}
	r.slots.Running.Hold(place.Lease)
	ctx = slot.WithLease(ctx, place.Lease)

	// A choice of these messages.
	if len(place.View.Pending) == 0 {
		return false, nil, nil
	}
	taken, end := place.View.Pending, errPanic
	defer func() { // also during a panic
		if end != nil {
			err = errors.Join(err, r.abandon(ctx, place.Lease, taken, end))
		}
	}()
	if err := r.load(ctx, place.Lease, &place.View); err != nil {
		end = err
		return false, nil, err
	}
	made, err := r.choose(ctx, place, rest)
	if err != nil {
		end = err
		return false, nil, err
	}
	if made.Kind == choice.Ask && place.Aside != 0 && len(made.Stops) == 0 {
		end = errAside
		return false, &slot.Rest{By: place.Aside, Others: rest.Others, Since: rest.Since}, nil
	}
	taken = made.Asked

	// Steps 5 and 6: an answer.
	ctx = withMessage(ctx, made.Asked[0])
	r.stats.TurnBegun(key, made.Asked)
	began := time.Now()
	live, hide := r.slots.Screen.Show(ctx, made)
	defer hide() // also during a panic, after the work has ended
	var a answer.Answer
	var cut stopped
	switch made.Kind {
	case choice.Ask:
		attended := r.slots.Watch.Attend(ctx, r.cfg.TurnTimeout, made, live)
		defer attended.Leave() // during a panic
		a, err = r.asker.Ask(attended.Work, made, live)
		a, cut, err = r.judge(ctx, made, a, err, attended.Leave())
		a.Card = hide()
	case choice.Command:
		a = r.command(ctx, made)
	default:
		a, err = r.fixed(ctx, made)
	}
	if err != nil {
		end = err
		r.cfg.Upkeep.Charge(ctx, key, a.Result.Spent)
		return false, nil, err
	}
	if len(cut.by) > 0 {
		a = r.receipt(ctx, a, cut)
	}

	// Step 7: a commit, with step 9 in it and step 8 behind it.
	more, err = r.commit(ctx, a, cut, began)
	if end = err; err != nil || len(cut.others) == 0 {
		return more, nil, err
	}
	return false, cut.rest(made.Since), nil
}

// load completes the waiting messages: their quotes, and the commands that a bare yes or no confirms. A dead letter, which is taken alone,
// stays as it is: its words or its quote may be what breaks turns.
func (r *Runner) load(ctx context.Context, l sessions.Lease, v *sessions.View) error {
	if v.Pending[0].Attempts >= choice.MaxBroken {
		return nil
	}
	if err := r.cfg.Views.Quoter.FillQuotes(ctx, l, v); err != nil {
		return err
	}
	r.cfg.Commands.Confirmations(ctx, v)
	return nil
}

func (r *Runner) choose(ctx context.Context, place slot.Slot, rest slot.Rest) (choice.Choice, error) {
	n, since := choice.MoveFirst(place.View.Pending, rest.Has), slot.Since(place.View)
	if n > 0 {
		since = rest.Since
	}
	made, err := r.chooser.Choose(ctx, place.Lease, place.View, n)
	made.Since = since
	if err == nil && made.Kind == choice.Command {
		made, err = r.decide(ctx, made)
	}
	if err == nil && made.Kind == choice.Ask {
		made.Stops = r.slots.Inbox.Stops(ctx, made)
	}
	return made, err
}

// decide executes a command that decides on calls of tools. The turn that follows makes them. A repeated attempt finds the decision made.
func (r *Runner) decide(ctx context.Context, made choice.Choice) (choice.Choice, error) {
	one, stop := context.WithTimeout(ctx, r.shared.CommitTimeout) // a statement that hangs frees the slot
	defer stop()
	calls, err := r.cfg.Commands.Decide(one, made.Lease, made.Asked[0])
	if err != nil {
		return made, fmt.Errorf("decide on calls of tools: %w", err)
	}
	return made.Decide(calls), nil
}

// abandon gives messages back whose turn ended without a commit.
func (r *Runner) abandon(ctx context.Context, l sessions.Lease, taken []sessions.Event, end error) error {
	var guilty []int64
	for _, e := range taken {
		if countsAsAttempt(end) {
			guilty = append(guilty, e.ID)
		}
	}
	return persist.Write(ctx, r.shared.CommitTimeout, "Turn not abandoned, trying again", func(one context.Context) error {
		return r.cfg.Stores.Turns.Abandon(one, l, guilty)
	})
}

// countsAsAttempt excludes lost leases, stops and storage failures. The storage counts crashes itself, see
// [sessions.Turns.Begin].
func countsAsAttempt(end error) bool {
	return errors.Is(end, errPanic) || errors.Is(end, sessions.ErrRefused)
}

func withMessage(ctx context.Context, e sessions.Event) context.Context {
	log := zerolog.Ctx(ctx).With().Str("msg_id", string(e.MsgID)).Logger()
	return log.WithContext(ctx)
}

// judge makes an answer of a stop, and of a failure of the model. After any other error the messages must be tried again.
func (r *Runner) judge(ctx context.Context, made choice.Choice, a answer.Answer, err error, end slot.End) (answer.Answer, stopped, error) {
	var cut stopped
	switch {
	case end.Lost != nil:
		return a, cut, end.Lost
	case err != nil && len(end.Stops) > 0:
		if a, cut, err = r.cutShort(ctx, made, a, end.Stops); err != nil {
			return a, cut, err
		}
	case err != nil && !isModelFault(end.TimedOut, a, err):
		return a, cut, err
	case err != nil:
		a = answer.Apologize(ctx, a, err)
	}
	if len(a.Result.Events) > 0 {
		a.Text += a.Notes
	}
	if len(made.Decided) > 0 && a.Text != "" {
		a.Text = choice.GrantedLines(made) + "\n\n" + a.Text // as the share: the log has the decision
	}
	if a.Share > 0 && len(a.Result.Events) > 0 {
		a.Text += wording.Say(wording.Shortened, made.Lang, a.Share) // for people only: the log has the model's text
	}
	return a, cut, nil
}

// isModelFault separates a failure of the model, which people read about, from one of the storage, after which the turn
// runs again. A deadline that expired in a stalled storage is a storage failure.
func isModelFault(timedOut bool, a answer.Answer, err error) bool {
	if timedOut {
		return !a.Stalled()
	}
	_, ok := errors.AsType[*llm.CallError](err)
	return ok
}

// command counts the tokens of a command for its person, whatever becomes of the answer. An erasure gives the turn another lease.
func (r *Runner) command(ctx context.Context, made choice.Choice) answer.Answer {
	ctx, stop := context.WithTimeoutCause(ctx, r.cfg.TurnTimeout, slot.ErrTurnTime)
	defer stop()
	t := view.CommandTurn{Lease: made.Lease, View: made.View, Asked: made.Asked[0], Lang: made.Lang}
	after := func() choice.Choice {
		made.Lease, made.View, made.Asked, made.Lang = t.Lease, t.View, []sessions.Event{t.Asked}, t.Lang
		return made
	}
	metered, used := gate.WithMeter(ctx)
	defer func() { r.chooser.Limits.Spend(ctx, after(), used()) }()
	files := r.cfg.Files.Tray(t.Lease.Key)
	t.Send = func(name string, body []byte) (string, error) { // under the lease of now
		f, err := files.Send(ctx, t.Lease, t.Asked.ID, sessions.File{Source: "command", Name: name, Body: body})
		return f.Name, err
	}
	text := r.cfg.Commands.Command(metered, &t)
	a := answer.Answer{For: after(), Text: text, Kept: t.Kept, Files: files.Files()}
	a.Result.Outcome = t.Outcome
	r.slots.Running.Hold(a.For.Lease)
	a.Mute = t.Asked.IsPress() && text == ""
	if !a.Mute {
		a.Result.Events = []sessions.Event{{Role: sessions.RoleAssistant, Content: cmp.Or(a.Kept, a.Text)}}
	}
	return a
}

// fixed answers without the model.
func (r *Runner) fixed(ctx context.Context, made choice.Choice) (answer.Answer, error) {
	ctx, stop := context.WithTimeoutCause(ctx, r.cfg.TurnTimeout, slot.ErrTurnTime)
	defer stop()
	text, err := r.chooser.FixedWords(ctx, made)
	a := answer.Answer{For: made, Text: text, Mute: text == ""}
	switch {
	case made.Kind == choice.Limited:
		a.Result.Outcome = sessions.Limited
	case made.Kind == choice.Rejected:
		a.Result.Outcome = sessions.Decided
		a.Result.Events = []sessions.Event{{Role: sessions.RoleAssistant, Content: text}}
	case !a.Mute:
		a.Result.Events = []sessions.Event{{Role: sessions.RoleAssistant, Content: text}}
	}
	return a, err
}

// commit stores a turn and sends its reply. more reports whether messages still wait.
func (r *Runner) commit(ctx context.Context, a answer.Answer, cut stopped, began time.Time) (more bool, err error) {
	key, t := a.For.Lease.Key, r.turnOf(ctx, a, cut)
	done, err := r.write(ctx, a.For.Lease, t)
	if err != nil {
		r.outbox.Invalidate(key) // a commit with a lost answer may have stored a reply
		return false, err
	}
	if len(t.Waits) > 0 {
		r.stats.CallsDecided(CallAsked, len(t.Waits))
	}
	if len(a.For.Decided) > 0 {
		r.stats.CallsDecided(string(a.For.Decided[0].State), len(a.For.Decided))
	}
	r.chooser.Limits.Spend(ctx, a.For, a.Result.Spent.Usage)
	r.chooser.NoteAnswered(a.For)
	r.stats.TurnCommitted(key, a.For.Kind, slices.Concat(a.For.Asked, cut.by), time.Since(began), r.shared.Now(), r.shared.Stopping())
	zerolog.Ctx(ctx).Info().Str("kind", string(a.For.Kind)).Int("messages", len(a.For.Asked)).Int("tokens", t.TotalTokens).
		Dur("took_ms", time.Since(began)).EmbedObject(a).Msg("Turn committed")
	r.outbox.Send(ctx, a.For.Lease, done.Replies, func() {
		if v := viewAfter(a, t); r.cfg.Upkeep.Due(v, t.TotalTokens) || r.cfg.Upkeep.FactsDue(v.Session) {
			r.maintenance.Wake(key)
		}
	})
	return len(cut.by) > 0 || len(a.For.Asked) < len(a.For.View.Pending) || a.For.View.More, nil
}

// turnOf adds to the turn of an answer what it takes, and its reply.
func (r *Runner) turnOf(ctx context.Context, a answer.Answer, cut stopped) sessions.TurnResult {
	v, asked, typed, t := a.For.View, a.For.Asked, cut.typed(), r.accountant.Account(ctx, a)
	t.ViewVersion, t.Marked, t.Command, t.Ran = v.Session.ViewVersion, r.candidates(a.For), a.For.Apart(), v.HasRuns || len(v.Runs) > 0
	t.Spent.Kind, t.Stops, t.Waits = sessions.SpentTurn, cut.by, newWaits(a.Waits)

	if len(cut.others) > 0 {
		t.CardTo = cut.others[0].ID
	}
	for _, e := range v.Pending[:len(asked)] { // counts of the whole bodies, as in the log
		t.Taken, t.TakenTokens = append(t.Taken, e.ID), append(t.TakenTokens, e.Tokens)
		t.Askers = append(t.Askers, e.SenderID)
	}
	for _, e := range v.Pending[len(asked):] {
		t.Left = append(t.Left, e.ID)
	}
	if a.For.Kind == choice.Dead {
		t.Dead, t.Taken, t.TakenTokens, t.Events = t.Taken, nil, nil, nil
	}
	t.ReplyWaits = r.outbox.Queued(a.For.Lease.Key, a.Card != "")
	if a.Mute {
		return t
	}
	t.Reply = &sessions.Reply{Target: chat.TargetOf(slices.Concat(asked, typed)), Text: a.Text, Nonce: chat.ReplyKey(a.For.Lease.Key, asked[0])}
	t.Reply.Target.Passing, t.Reply.Target.Card, t.Reply.Target.Approve = a.Kept != "", a.Card, len(t.Waits) > 0 && len(t.Waits) == len(a.Waits)
	if t.Reply.Target.Scheduled {
		t.Reply.Target.Late = choice.LateNote(a.For)
	}
	t.Files = chat.FileReplies(*t.Reply, a.Files, a.For.Lang)
	return t
}

// CallAsked is the outcome of a call that begins to wait for an approval.
const CallAsked = "asked"

// newWaits leaves out calls that earlier turns stored.
func newWaits(calls []sessions.Approval) []sessions.Approval {
	return slices.DeleteFunc(slices.Clone(calls), func(a sessions.Approval) bool { return a.State != "" })
}

// candidates are the asked messages that may state facts.
func (r *Runner) candidates(made choice.Choice) []int64 {
	if made.Kind != choice.Ask && made.Kind != choice.Stale {
		return nil
	}
	var marked []int64
	for _, e := range made.Asked {
		if classify.Candidate(r.cfg.Views.Words.OwnWords(e)) {
			marked = append(marked, e.ID)
		}
	}
	return marked
}

// write repeats a commit through an outage, so that the answer is not lost. A retry detects a commit whose answer
// was lost: its messages are no longer pending. The lease's term guards against a late one.
func (r *Runner) write(ctx context.Context, l sessions.Lease, t sessions.TurnResult) (done sessions.Committed, err error) {
	tries := 0
	err = persist.Write(ctx, r.shared.CommitTimeout, "Commit failed, trying again", func(one context.Context) (err error) {
		tries++
		done, err = r.cfg.Stores.Turns.Commit(one, l, t)
		return err
	})
	if tries == 1 && sessions.IsFinal(err) { // a retry may have met its own commit, which counted the spending
		r.cfg.Upkeep.Charge(ctx, l.Key, t.Spent)
	}
	return done, err
}

// viewAfter is the view behind a commit, without its sequence numbers.
func viewAfter(a answer.Answer, t sessions.TurnResult) sessions.View {
	v := a.For.View
	if a.For.Kind == choice.Dead || a.For.Apart() {
		return v
	}
	v.Tail = slices.Concat(v.Tail, a.For.Asked, a.Result.Events)
	v.Session.LastSeq += int64(len(a.For.Asked) + len(a.Result.Events) + len(t.Stops))
	v.Session.Candidates += len(t.Marked)
	if t.Suspicion != nil {
		v.Session.Suspicion = t.Suspicion
	}
	return v
}
