package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sessions/retry"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Commit implements sessions.Turns. After an error other than sessions.ErrLeaseLost and ErrConflict the turn may be
// committed and only the answer lost. A repeated commit then returns ErrConflict.
func (s *Turns) Commit(ctx context.Context, l sessions.Lease, t sessions.TurnResult) (sessions.Committed, error) {
	c, err := s.commit(ctx, l, t)
	if err != nil {
		return sessions.Committed{}, fmt.Errorf("committing a turn: %w", pg.AsRefused(err))
	}
	return c, nil
}

func (s *Turns) commit(ctx context.Context, l sessions.Lease, t sessions.TurnResult) (sessions.Committed, error) {
	w, err := writesOf(l, t)
	if err != nil {
		return sessions.Committed{}, err
	}
	now, seen := time.Now(), slices.Clone(t.Taken)
	for _, e := range t.Stops {
		seen = append(seen, e.ID)
	}
	if !s.speakers.areNoted(l, seen, now) {
		w.see = append(w.see, &dbsqlc.PeopleSeeParams{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, Ids: seen, SeenAt: s.db.Clock.Now()})
	}
	c, err := w.send(ctx, s.db)
	switch {
	case errors.Is(err, errReadGone): // perhaps that deletion is rolled back
		if retry.Sleep(ctx, readPause) {
			c, err = w.send(ctx, s.db)
		}
	case errors.Is(err, pgx.ErrNoRows): // another owner, or an outsider deleted the session's row
		if _, err = reviveSessions(ctx, s.db, []sessions.Lease{l}); err == nil {
			c, err = w.send(ctx, s.db)
		}
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows), errors.Is(err, errReadGone):
		return sessions.Committed{}, sessions.ErrLeaseLost
	case pg.IsCode(err, pg.DivisionByZero):
		return sessions.Committed{}, fmt.Errorf("a message that it took is not pending: %w", sessions.ErrConflict)
	case pg.IsConstraint(err, eventPlaces):
		if err := s.db.Q.SessionContinue(ctx, s.db.Pool, l.Key); err != nil {
			return sessions.Committed{}, err
		}
		return sessions.Committed{}, fmt.Errorf("the session had fallen behind its log: %w", sessions.ErrConflict)
	case err != nil:
		return sessions.Committed{}, err
	}
	s.logs.Note(l.Key, c.LastSeq)
	for _, u := range w.usage {
		s.db.Tokens.Add(u.PromptTokens + u.CompletionTokens)
	}
	if len(w.see) > 0 {
		s.speakers.note(l, seen, now)
	}
	for i := range c.Replies {
		c.Replies[i].Key = l.Key
	}
	return c, nil
}

// eventPlaces is the unique index of places. No message is at fault for a place that is taken: the session's row is older than
// the log, as after a deletion under an earlier release.
const eventPlaces = "dingtalk_session_events_seq"

// writes are the parameters of the statements of a commit, in their order. A statement without parameters is not sent.
type writes struct {
	session   *dbsqlc.TurnSessionParams
	pin       []*dbsqlc.TurnPinParams
	suspicion []*dbsqlc.TurnSuspicionParams
	read      [][]int64
	take      []*dbsqlc.TurnTakeParams
	aside     []*dbsqlc.TurnSetAsideParams
	whole     []*dbsqlc.TurnWholeParams
	add       []*dbsqlc.TurnAddParams
	left      []*dbsqlc.TurnReturnParams
	runs      []*dbsqlc.TurnRunsDeleteParams
	waits     []*dbsqlc.TurnWaitsParams
	audit     []*dbsqlc.TurnAuditParams
	usage     []*dbsqlc.TurnUsageParams
	reply     []*dbsqlc.TurnReplyParams
	files     []*dbsqlc.TurnFileParams
	replies   []sessions.Reply // the rows of reply and files
	card      []*dbsqlc.TurnCardParams
	pass      []*dbsqlc.TurnCardPassParams
	next      []*dbsqlc.TurnNextParams
	stops     []*dbsqlc.TurnTakeParams
	stopped   []*dbsqlc.TurnWholeParams
	see       []*dbsqlc.PeopleSeeParams

	messages []int64 // ids of those that the turn ends
}

// errReadGone means that a memory which the turn read is deleted, or is being deleted.
var errReadGone = errors.New("a memory that it read is deleted")

const readPause = 50 * time.Millisecond

// send returns pgx.ErrNoRows when the lease is not the current one. After an error it has written nothing, unless the answer was lost.
func (w *writes) send(ctx context.Context, s *pg.DB) (sessions.Committed, error) {
	p := s.Pool.Pipeline()
	defer p.Close()
	session := s.Q.TurnSession(ctx, p, []*dbsqlc.TurnSessionParams{w.session})
	s.Q.TurnPin(ctx, p, w.pin)
	s.Q.TurnSuspicion(ctx, p, w.suspicion)
	read, readAll := s.Q.TurnRead(ctx, p, w.read), s.Q.TurnReadAll(ctx, p, w.read)
	s.Q.TurnTake(ctx, p, w.take)
	s.Q.TurnSetAside(ctx, p, w.aside)
	s.Q.TurnWhole(ctx, p, w.whole)
	s.Q.TurnAdd(ctx, p, w.add)
	s.Q.TurnReturn(ctx, p, w.left)
	s.Q.TurnRunsDelete(ctx, p, w.runs)
	s.Q.TurnWaits(ctx, p, w.waits)
	s.Q.TurnAudit(ctx, p, w.audit)
	s.Q.TurnUsage(ctx, p, w.usage)
	reply, files := s.Q.TurnReply(ctx, p, w.reply), s.Q.TurnFile(ctx, p, w.files)
	s.Q.TurnCard(ctx, p, w.card)
	s.Q.TurnCardPass(ctx, p, w.pass)
	s.Q.TurnNext(ctx, p, w.next)
	s.Q.TurnTake(ctx, p, w.stops)
	s.Q.TurnWhole(ctx, p, w.stopped)
	s.Q.PeopleSee(ctx, p, w.see) // behind all takes: it reads messages with a place

	err := p.Send(ctx)
	last, none := pg.One(session.QueryRow)
	if errors.Is(none, pgx.ErrNoRows) && (err == nil || pg.IsCode(err, pg.DivisionByZero)) {
		return sessions.Committed{}, none
	}
	if pg.IsCode(pg.Done(read.Exec), pg.LockNotAvailable) || pg.IsCode(pg.Done(readAll.Exec), pg.DivisionByZero) {
		return sessions.Committed{}, errReadGone
	}
	if err != nil {
		return sessions.Committed{}, err
	}
	c := sessions.Committed{LastSeq: last}
	rows, err := pg.Found(reply.QueryRow)
	for i, row := range rows {
		c.Replies = append(c.Replies, sessions.Outgoing{ID: row.ID, Reply: w.replies[i], Created: row.CreatedAt, Attempts: w.reply[i].Attempts})
	}
	files.QueryRow(func(i int, row dbsqlc.TurnFileRow, gone error) {
		switch {
		case gone == nil:
			c.Replies = append(c.Replies, sessions.Outgoing{ID: row.ID, Reply: w.replies[len(rows)+i], Created: row.CreatedAt})
		case !errors.Is(gone, pgx.ErrNoRows): // the bytes are deleted
			err = errors.Join(err, gone)
		}
	})
	return c, err
}

func writesOf(l sessions.Lease, t sessions.TurnResult) (*writes, error) {
	if len(t.Taken) != len(t.TakenTokens) {
		return nil, fmt.Errorf("%d messages taken, but %d token counts: %w", len(t.Taken), len(t.TakenTokens), sessions.ErrRefused)
	}
	w := &writes{messages: slices.Concat(t.Taken, t.Dead)}
	w.count(l, t)
	if t.Pinned != nil {
		w.pin = append(w.pin, &dbsqlc.TurnPinParams{
			SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, ViewVersion: t.ViewVersion, Pinned: pg.Clean(t.Pinned.Text),
		})
	}
	if rows := readRows(t); len(rows) > 0 {
		w.read = append(w.read, rows)
	}
	if err := w.takeAll(l, t); err != nil {
		return nil, err
	}
	for _, id := range t.Dead {
		w.aside = append(w.aside, &dbsqlc.TurnSetAsideParams{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, ID: id})
	}
	for _, id := range w.messages {
		w.whole = append(w.whole, &dbsqlc.TurnWholeParams{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, ID: id})
	}
	if err := w.addAll(l, t); err != nil {
		return nil, err
	}
	if len(t.Left) > 0 {
		w.left = append(w.left, &dbsqlc.TurnReturnParams{SessionKey: l.Key, Owner: string(l.Owner), Term: &l.Term, Ids: t.Left})
	}
	if t.Ran {
		w.runs = append(w.runs, &dbsqlc.TurnRunsDeleteParams{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term})
	}
	w.addWaits(l, t)
	if t.CardTo != 0 {
		w.pass = append(w.pass, &dbsqlc.TurnCardPassParams{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, TurnEventID: t.CardTo, Ids: t.Taken})
	}
	w.takeStops(l, t)
	return w, w.addReply(l, t)
}

// count sets what the session and its people have used.
func (w *writes) count(l sessions.Lease, t sessions.TurnResult) {
	p := &dbsqlc.TurnSessionParams{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, Events: len(t.Taken) + len(t.Events) + len(t.Stops), ViewVersion: t.ViewVersion,
		TotalTokens: pg.Clamp(t.TotalTokens), Appended: pg.Clamp(t.Appended), ObservedTokens: pg.Clamp(t.ObservedTokens),
		ObservedEvents: len(t.Taken) + observedEvents(t.Events), Calibration: pg.Finite(t.Calibration),
		PromptTokens: int64(pg.Clamp(t.Spent.Usage.Prompt)), CachedTokens: int64(pg.Clamp(t.Spent.Usage.Cached)),
		CompletionTokens: int64(pg.Clamp(t.Spent.Usage.Completion)), Model: pg.Clean(t.Spent.Model), Marked: len(t.Marked),
	}
	w.session = p
	cost := pg.Finite(t.Spent.Cost)
	if max(p.PromptTokens, p.CachedTokens, p.CompletionTokens) == 0 && cost <= 0 {
		return
	}
	people := slices.Compact(slices.Sorted(slices.Values(t.Askers)))
	if len(people) == 0 {
		people = []sessions.UserID{""}
	}
	own := make([]int, len(people))
	for i, by := range t.Askers {
		if at, ok := slices.BinarySearch(people, by); ok && i < len(t.TakenTokens) {
			own[at] += t.TakenTokens[i]
		}
	}
	prompt, cached, completion := sessions.SharesOf(int(p.PromptTokens), own),
		sessions.Shares(int(p.CachedTokens), len(people)), sessions.Shares(int(p.CompletionTokens), len(people))
	for i, person := range people {
		u := &dbsqlc.TurnUsageParams{
			SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, Model: p.Model, Person: string(person),
			PromptTokens: int64(prompt[i]), CachedTokens: int64(cached[i]), CompletionTokens: int64(completion[i]), Cost: cost / float64(len(people)),
		}
		if all := p.PromptTokens + p.CompletionTokens; all > 0 {
			u.Cost = cost * float64(u.PromptTokens+u.CompletionTokens) / float64(all)
		}
		if i == 0 {
			u.Turns = int64(min(len(t.Taken), 1)) // one person has it, so that sums stay whole
		}
		w.usage = append(w.usage, u)
	}
}

func (w *writes) takeAll(l sessions.Lease, t sessions.TurnResult) error {
	added := addedOutcome(t.Outcome)
	for i, id := range t.Taken {
		p := &dbsqlc.TurnTakeParams{
			SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, ID: id, Behind: len(t.Taken) + len(t.Events) + len(t.Stops) - 1 - i,
			Tokens: pg.Clamp(t.TakenTokens[i]), Candidate: slices.Contains(t.Marked, id), Added: added, Searched: !t.Command,
		}
		if i < len(t.TakenWithheld) {
			var err error
			if p.Withheld, err = withheldText(t.TakenWithheld[i]); err != nil {
				return err
			}
		}
		w.take = append(w.take, p)
	}
	if t.Suspicion == nil {
		return nil
	}
	text, err := suspicionText(t.Suspicion)
	w.suspicion = append(w.suspicion, &dbsqlc.TurnSuspicionParams{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, Suspicion: []byte(text),
	})
	return err
}

func addedOutcome(o sessions.Outcome) []byte {
	if o == "" {
		return []byte("{}")
	}
	return []byte(`{"outcome":"` + string(o) + `"}`)
}

// takeStops ends the commands that ended the turn.
func (w *writes) takeStops(l sessions.Lease, t sessions.TurnResult) {
	if len(t.Stops) == 0 {
		return
	}
	w.next = append(w.next, &dbsqlc.TurnNextParams{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term})
	added := addedOutcome(sessions.StopDone)
	if t.CardTo != 0 {
		added = fmt.Appendf(nil, `{"outcome":"%s","next":%d}`, sessions.StopDone, t.CardTo)
	}
	for i, e := range t.Stops {
		w.stopped = append(w.stopped, &dbsqlc.TurnWholeParams{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, ID: e.ID})
		w.stops = append(w.stops, &dbsqlc.TurnTakeParams{
			SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, ID: e.ID, Behind: len(t.Stops) - 1 - i,
			Tokens: pg.Clamp(e.Tokens), Added: added,
		})
	}
}

func (w *writes) addAll(l sessions.Lease, t sessions.TurnResult) error {
	for i, e := range t.Events {
		if !e.Role.Known() {
			return fmt.Errorf("event %d has the unknown role %q: %w", i, e.Role, sessions.ErrRefused)
		}
		p := &dbsqlc.TurnAddParams{
			SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, Behind: len(t.Events) + len(t.Stops) - 1 - i, Role: string(e.Role),
			Content: pg.Clean(e.Content), ToolCallID: pg.Clean(e.ToolCallID), ToolName: pg.Clean(e.ToolName), Tokens: pg.Clamp(e.Tokens),
			Searched: !t.Command,
		}
		if len(e.ToolCalls) > 0 {
			calls, err := pg.CleanJSON(e.ToolCalls)
			if err != nil {
				return err
			}
			p.ToolCalls = string(calls)
		}
		var err error
		if p.Withheld, err = withheldText(e.Withheld); err != nil {
			return err
		}
		w.add = append(w.add, p)
	}
	return nil
}

// addWaits stores calls that wait for a decision, with their rows of the audit.
func (w *writes) addWaits(l sessions.Lease, t sessions.TurnResult) {
	for _, a := range t.Waits {
		w.waits = append(w.waits, &dbsqlc.TurnWaitsParams{
			SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, ID: a.ID, TurnEventID: a.EventID, Tool: pg.Clean(a.Tool), Arguments: pg.Clean(a.Arguments),
			AskedBy: pg.Clean(string(a.AskedBy)), WaitSeconds: a.Wait.Seconds(), Webhook: pg.Clean(a.Webhook), WebhookExpires: pg.OrNil(a.WebhookExpires),
		})
		w.audit = append(w.audit, &dbsqlc.TurnAuditParams{
			SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, Actor: pg.Clean(string(a.AskedBy)), Action: "ask_call", Detail: pg.Clean(a.AuditDetail()),
		})
	}
}

func (w *writes) addReply(l sessions.Lease, t sessions.TurnResult) error {
	if t.Reply == nil {
		return nil
	}
	target, err := pg.CleanJSON(t.Reply.Target)
	if err != nil {
		return err
	}
	p := &dbsqlc.TurnReplyParams{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, Target: target, Body: pg.Clean(t.Reply.Text), Nonce: pg.Clean(t.Reply.Nonce),
		HandSeconds: pg.ClaimTime.Seconds(),
	}
	if !t.ReplyWaits {
		p.Claimed, p.Attempts = true, 1
	}
	w.reply, w.replies = append(w.reply, p), append(w.replies, *t.Reply)
	if err := w.addFiles(l, t.Files); err != nil {
		return err
	}
	if track := pg.Clean(t.Reply.Target.Card); track != "" {
		c := &dbsqlc.TurnCardParams{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, OutTrackID: track}
		if len(t.Taken) > 0 {
			c.TurnEventID = t.Taken[0]
		}
		w.card = append(w.card, c)
	}
	return nil
}

func (w *writes) addFiles(l sessions.Lease, files []sessions.Reply) error {
	for _, f := range files {
		target, err := pg.CleanJSON(f.Target)
		if err != nil {
			return err
		}
		w.replies, w.files = append(w.replies, f), append(w.files, &dbsqlc.TurnFileParams{
			SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, Target: target, Body: pg.Clean(f.Text), Nonce: pg.Clean(f.Nonce),
			HandSeconds: pg.ClaimTime.Seconds(), FileID: f.Target.File.ID,
		})
	}
	return nil
}

func readRows(t sessions.TurnResult) []int64 {
	rows := append(convert.PinnedRows(t.Pinned), t.Read...)
	slices.Sort(rows)
	return slices.Compact(rows)
}

// observedEvents counts a turn's events before the answer.
func observedEvents(events []sessions.Event) int {
	for i, e := range slices.Backward(events) {
		if e.Role == sessions.RoleAssistant {
			return i
		}
	}
	return len(events)
}
