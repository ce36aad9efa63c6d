package erasure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/memory/similarity"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// ForgetPerson implements memory.Erasures. Each session is one transaction; the asking one and memory come last.
func (s *Store) ForgetPerson(ctx context.Context, f memory.Forget) (memory.Forgotten, error) {
	g, done, err := s.beginPersonErasure(ctx, f, s.erasing)
	if err != nil {
		return memory.Forgotten{Lease: f.From.Lease}, err
	}
	defer done()
	ctx = pg.AroundWaits(s.releaseWhileWaiting(ctx, f.From.Lease), func(wait func() error) error {
		<-s.erasing // an erasure that waits holds no connection
		defer func() { s.erasing <- struct{}{} }()
		return wait()
	})
	if err = g.eraseEverywhere(ctx); err == nil {
		err = s.awaitFrames(ctx)
	}
	return *g.done, forgettingError(err)
}

func forgettingError(err error) error {
	if err != nil {
		return fmt.Errorf("forgetting a person: %w", pg.AsRefused(err))
	}
	return nil
}

// personErasure is an erasure of one person, from all sessions of a robot or from one group.
type personErasure struct {
	*Store
	f        memory.Forget
	who      person
	rows     []dbsqlc.PersonSessionsRow   // sessions with content of the person
	facts    []dbsqlc.MemoriesOfPersonRow // about them, or said by them
	compared []dbsqlc.MemoriesOfPersonRow // compared approximately
	keyed    dayKey
	done     *memory.Forgotten
}

const maxCompared = 200

// The caller calls done at the end, which frees the place.
func (s *Store) beginPersonErasure(ctx context.Context, f memory.Forget, places chan struct{}) (g *personErasure, done func(), err error) {
	g = &personErasure{Store: s, f: f, done: &memory.Forgotten{Lease: f.From.Lease}}
	if f.Person == "" {
		return nil, nil, fmt.Errorf("forgetting a person without an id: %w", sessions.ErrRefused)
	}
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, forgettingError(context.Cause(ctx))
	}
	if err := g.identifyPerson(ctx); err != nil {
		<-places
		return nil, nil, forgettingError(err)
	}
	return g, func() { <-places }, nil
}

func (g *personErasure) identifyPerson(ctx context.Context) error {
	ids, err := g.identities.IDs(ctx, g.db.Pool, g.f.Robot, g.f.Person)
	if err != nil {
		return err
	}
	g.who.ids = ids
	if g.f.Self {
		if err := g.readKey(ctx); err != nil {
			return err
		}
		times, err := g.db.Q.PersonErasures(ctx, g.db.Pool, &dbsqlc.PersonErasuresParams{People: g.hashes(), Day: g.dayOfErasure()})
		if err != nil {
			return err
		}
		if times >= memory.MaxErasures {
			return memory.ErrTooOften
		}
	}
	spoken, quoted, err := g.identities.Logs(ctx, g.f.Robot, ids)
	if err != nil {
		return err
	}
	outside := func(key string) bool { return !g.covers(sessions.Key(key)) }
	spoken, quoted = slices.DeleteFunc(spoken, outside), slices.DeleteFunc(quoted, outside)
	var logs []sessions.Key
	for _, key := range slices.Concat(spoken, quoted) {
		logs = append(logs, sessions.Key(key))
	}
	if err := g.db.Revive(ctx, g.db.Pool.Pipeline(), logs...); err != nil {
		return err
	}
	if g.who.nicks, err = g.db.Q.PersonNicks(ctx, g.db.Pool, ids); err != nil {
		return err
	}
	g.rows, err = g.db.Q.PersonSessions(ctx, g.db.Pool, &dbsqlc.PersonSessionsParams{
		People: ids, Spoken: spoken, Quoted: quoted, Robot: string(g.f.Robot),
	})
	if err != nil {
		return err
	}
	g.rows = slices.DeleteFunc(g.rows, func(r dbsqlc.PersonSessionsRow) bool { return !g.covers(r.SessionKey) })
	g.facts, err = g.factsThere(ctx, g.db.Pool)
	for _, m := range g.facts {
		if m.Kind != memory.KindDigest && len(g.compared) < maxCompared && utf8.RuneCountInString(m.Content) >= similarity.MinPhrase {
			g.compared = append(g.compared, m)
		}
	}
	return err
}

func (g *personErasure) eraseEverywhere(ctx context.Context) error {
	if err := g.readKey(ctx); err != nil {
		return err
	}
	// First, so that none stores a message behind the erasure of its session.
	if err := g.deleteSchedules(ctx, g.db.Pool); err != nil {
		return err
	}
	asking, spoke := g.f.From.Lease.Key, false
	for _, r := range g.rows {
		if r.SessionKey == asking {
			spoke = r.Spoke
			continue
		}
		if err := g.eraseOther(ctx, r); err != nil && !errors.Is(err, sessions.ErrNotFound) { // not found: it was deleted meanwhile
			return fmt.Errorf("session %s: %w", r.SessionKey, err)
		}
	}
	before := *g.done
	return retryOn(errStale, func(final bool) error {
		var sv *sessionSurvey
		if spoke {
			var err error
			if sv, err = g.prepareSession(ctx, asking, final); err != nil {
				return err
			}
		}
		return g.db.InTx(ctx, func(tx pgx.Tx) error {
			*g.done = before
			if asking != "" {
				if err := g.eraseAskingSession(ctx, tx, asking, sv); err != nil {
					return err
				}
			}
			return g.eraseMemory(ctx, tx)
		})
	})
}

func (g *personErasure) eraseOther(ctx context.Context, r dbsqlc.PersonSessionsRow) error {
	alone, before := g.isTheirs(r.SessionKey, r.RobotCode, r.ConversationID, r.ConversationType, r.Spoke), *g.done
	hold := g.db.WithSession
	if g.f.From.Lease.Key != "" { // the asking session's commit makes this one durable; without it the turn asks again
		hold = g.db.WithSessionUnsynced
	}
	return retryOn(errStale, func(final bool) error {
		var sv *sessionSurvey
		if r.Spoke && !alone {
			var err error
			if sv, err = g.prepareSession(ctx, r.SessionKey, final); err != nil {
				return err
			}
		}
		return hold(ctx, r.SessionKey, func(tx pgx.Tx, row *dbsqlc.Session) error {
			*g.done = before // it may run more than once
			if err := g.awaitOpenWork(ctx, tx, row, g.f.From.Lease); err != nil {
				return err
			}
			if alone {
				return g.deletePrivate(ctx, tx, r.SessionKey, 0, repeatsNothing)
			}
			return g.eraseInSession(ctx, tx, row, sv)
		})
	})
}

func (g *personErasure) prepareSession(ctx context.Context, key sessions.Key, final bool) (*sessionSurvey, error) {
	sv, err := g.surveySession(ctx, key)
	if err != nil {
		return nil, err
	}
	seqs, _, _ := placesOf(sv.erasablePlaces())
	sv.draft, err = g.draftSummaries(ctx, key, seqs, g.goneContentOf(sv), final)
	return sv, err
}

func (g *personErasure) goneContentOf(sv *sessionSurvey) goneContent {
	gone := goneContent{repeats: sv.traits.repeats}
	for _, m := range g.facts {
		if m.Kind != memory.KindDigest {
			gone.facts = append(gone.facts, m.Content)
		}
	}
	return gone
}

func (g *personErasure) factsParams() *dbsqlc.MemoriesOfPersonParams {
	return &dbsqlc.MemoriesOfPersonParams{People: g.who.ids, RobotSessions: g.robotSessions()}
}

func (g *personErasure) robotSessions() string { return pg.RobotSessions(g.f.Robot) }

// isTheirs reports a private chat, or the person's session in a group.
func (g *personErasure) isTheirs(
	key sessions.Key, robot sessions.RobotCode, c sessions.ConversationID, kind sessions.ConversationType, spoke bool,
) bool {
	return kind == sessions.Private && spoke || slices.ContainsFunc(g.who.ids, func(id string) bool {
		return key == sessions.NewKey(robot, c, sessions.UserID(id))
	})
}

// Messages after the asking one stay, with answers that do not repeat the rest.
func (g *personErasure) deletePrivate(ctx context.Context, tx pgx.Tx, key sessions.Key, asked int64, repeats func(string) bool) error {
	drawn, err := g.db.Q.MemoriesDrawn(ctx, tx, &dbsqlc.MemoriesDrawnParams{SessionKey: key, People: g.who.ids})
	if err != nil {
		return err
	}
	ids := make([]int64, len(drawn))
	for i, m := range drawn {
		ids[i] = m.ID
	}
	if err := g.forgetThere(ctx, tx, ids, key); err != nil {
		return err
	}
	answers, err := g.answersAfter(ctx, tx, key, asked, repeats)
	if err != nil {
		return err
	}
	messages, err := g.messagesUpTo(ctx, tx, key, asked, answers)
	if err != nil {
		return err
	}
	g.done.Messages += int(messages.Messages + messages.Answers)
	gone, err := g.Store.deleteSession(ctx, tx, key, asked, answers)
	g.done.Sessions++
	g.done.Add(sessions.Erased{
		Events: gone.Events, Summaries: gone.Summaries, Memories: gone.Memories, Blobs: gone.Blobs, Replies: gone.Replies,
	})
	return err
}

func (g *personErasure) messagesUpTo(
	ctx context.Context, db dbsqlc.DBTX, key sessions.Key, asked int64, answers []int64,
) (dbsqlc.SessionMessagesRow, error) {
	return g.db.Q.SessionMessages(ctx, db, &dbsqlc.SessionMessagesParams{
		SessionKey: key, Asked: asked, Answers: append([]int64{}, answers...), Erased: sessions.ErasedText,
	})
}

// Without a survey they never spoke there: quotes of them and memories go, and nothing of the bot's own.
func (g *personErasure) eraseInSession(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, sv *sessionSurvey) error {
	e := &eventErasure{Store: g.Store, tx: tx, row: row, who: g.who, goneContent: goneContent{repeats: repeatsNothing}}
	messages := 0
	if sv != nil {
		if row.LastSeq < sv.through {
			return errStale
		}
		if err := g.surveyOn(ctx, tx, sv); err != nil {
			return err
		}
		e.seqs, _, messages = placesOf(sv.erasablePlaces())
		e.goneContent, e.draft = g.goneContentOf(sv), sv.draft
	}
	g.done.Messages += messages
	wipe := e.eraseQuotesOf
	if len(e.seqs) > 0 {
		wipe = e.eraseAll
	}
	if err := wipe(ctx); err != nil {
		return err
	}
	g.done.Sessions++
	g.done.Add(e.done)
	g.done.Embeddings += e.vectors
	if err := g.factsOf(ctx, tx, row.SessionKey, sv); err != nil {
		return err
	}
	if err := g.removeName(ctx, tx, row.SessionKey, e.repeats); err != nil || len(e.seqs) > 0 {
		return err // with events its readers start again already
	}
	if err := g.db.Q.SessionErased(ctx, tx, &dbsqlc.SessionErasedParams{SessionKey: row.SessionKey}); err != nil {
		return err
	}
	return g.endTerms(ctx, tx, false, row.SessionKey)
}

// A fact is the person's when it is about them, said by them, or a repeat of them without a known author. Others'
// statements stay.
func (g *personErasure) ofThem(m *dbsqlc.MemoriesDrawnRow, sv *sessionSurvey) bool {
	if g.f.Group != "" && m.Scope == memory.ScopeTeam {
		return false
	}
	return m.Theirs || g.who.is(m.SubjectID) || g.who.is(m.SaidBy) ||
		sv != nil && (sv.traits.hasLabel(m.Content) || m.SaidBy == "" && hasUnshared(sv.traits.matchText(m.Content)))
}

// Digests keep the rest of their content.
func (g *personErasure) factsOf(ctx context.Context, tx pgx.Tx, key sessions.Key, sv *sessionSurvey) error {
	drawn, err := g.db.Q.MemoriesDrawn(ctx, tx, &dbsqlc.MemoriesDrawnParams{SessionKey: key, People: g.who.ids})
	if err != nil {
		return err
	}
	var ids, digests []int64
	for i := range drawn {
		switch m := &drawn[i]; {
		case m.Kind == memory.KindDigest:
			if sv != nil && sv.traits.repeats(m.Content) {
				digests = append(digests, m.ID)
			}
		case g.ofThem(m, sv):
			ids = append(ids, m.ID)
		}
	}
	if err := g.forgetThere(ctx, tx, ids, g.f.From.Lease.Key); err != nil || len(digests) == 0 {
		return err
	}
	return g.trimTheirDigests(ctx, tx, digests, sv.traits.repeats)
}

func (g *personErasure) trimTheirDigests(ctx context.Context, tx pgx.Tx, ids []int64, repeats func(string) bool) error {
	memories, vectors, err := g.trimDigests(ctx, tx, &dbsqlc.DigestsTellingParams{Ids: ids}, repeats)
	g.done.Memories += memories
	g.done.Embeddings += vectors
	return err
}

// removeName also wipes waiting messages.
func (g *personErasure) removeName(ctx context.Context, tx pgx.Tx, key sessions.Key, repeats func(string) bool) error {
	who, asked := g.who.ids, int64(0)
	if key == g.f.From.Lease.Key && g.f.Self {
		asked = g.f.From.Event
	}
	if err := g.eraseToolRuns(ctx, tx, key, repeats); err != nil {
		return err
	}
	waiting, err := g.db.Q.PersonWaiting(ctx, tx, &dbsqlc.PersonWaitingParams{
		SessionKey: key, People: who, Asked: asked, Erased: sessions.ErasedText, Tokens: sessions.ErasedTokens,
	})
	if err != nil {
		return err
	}
	g.done.Events += int(waiting)
	g.done.Messages += int(waiting)
	if err := g.db.Q.MentionsUnname(ctx, tx, &dbsqlc.MentionsUnnameParams{SessionKey: key, People: who}); err != nil {
		return err
	}
	if err := g.db.Q.PersonUnname(ctx, tx, &dbsqlc.PersonUnnameParams{SessionKey: key, People: who, Asked: asked}); err != nil {
		return err
	}
	if err := g.trimPeople(ctx, tx, key); err != nil {
		return err
	}
	if err := g.db.Q.OutboxUnname(ctx, tx, &dbsqlc.OutboxUnnameParams{
		SessionKey: key, People: who, Nicks: append([]string{}, g.who.nicks...),
	}); err != nil {
		return err
	}
	return g.db.Q.SessionTextsErase(ctx, tx, &dbsqlc.SessionTextsEraseParams{SessionKey: key, Undone: sessions.CompactUndone})
}

// eraseToolRuns wipes tool calls of the open turn when it has the person's messages, or the calls repeat them.
func (g *personErasure) eraseToolRuns(ctx context.Context, tx pgx.Tx, key sessions.Key, repeats func(string) bool) error {
	runs, err := g.db.Q.ToolRunsOf(ctx, tx, &dbsqlc.ToolRunsOfParams{SessionKey: key, People: g.who.ids})
	if err != nil {
		return err
	}
	for _, r := range runs {
		if !r.Theirs && !repeats(r.Arguments) && !repeats(r.Result) {
			continue
		}
		if err := g.db.Q.ToolRunErase(ctx, tx, &dbsqlc.ToolRunEraseParams{
			SessionKey: key, EventID: r.EventID, CallID: r.CallID, Erased: sessions.ErasedText,
		}); err != nil {
			return err
		}
	}
	return nil
}

func (g *personErasure) eraseAskingSession(ctx context.Context, tx pgx.Tx, key sessions.Key, sv *sessionSurvey) error {
	row, err := g.db.Q.SessionLock(ctx, tx, key)
	if err != nil {
		return pg.AsNotFound(err)
	}
	l := g.f.From.Lease
	if pg.OrZero(row.LeaseOwner) != l.Owner || row.LeaseTerm != l.Term {
		return sessions.ErrLeaseLost
	}
	if err := g.awaitSend(ctx, tx, key); err != nil {
		return err
	}
	message, err := g.db.Q.AskingMessage(ctx, tx, &dbsqlc.AskingMessageParams{SessionKey: key, Asked: g.f.From.Event, Outcome: string(sessions.ErasedAll)})
	if err == nil {
		err = g.db.Q.AskingUnname(ctx, tx, &dbsqlc.AskingUnnameParams{
			SessionKey: key, Asked: g.f.From.Event, Content: memory.ForgetDone(g.f.From.Language), Message: message,
		})
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	spoke := row.ConversationType == sessions.Private && g.f.Self
	if !g.isTheirs(key, row.RobotCode, row.ConversationID, row.ConversationType, spoke) {
		if err := g.eraseInSession(ctx, tx, &row, sv); err != nil {
			return err
		}
		return g.keepAsking(ctx, tx, &row, g.f.From, g.done)
	}
	repeats := repeatsNothing
	if sv != nil {
		repeats = sv.traits.repeats
	}
	if err := g.deletePrivate(ctx, tx, key, g.f.From.Event, repeats); err != nil {
		return err
	}
	g.done.Lease.Term = row.LeaseTerm + 1
	return g.createAgain(ctx, tx, &row)
}

// createAgain creates a deleted session again for the asking turn, with the messages after it.
func (g *personErasure) createAgain(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session) error {
	last := int64(0)
	for _, base := range []int64{row.LastSeq, 0} { // through free numbers
		var err error
		if last, err = g.db.Q.EventsRenumber(ctx, tx, &dbsqlc.EventsRenumberParams{SessionKey: row.SessionKey, Base: base}); err != nil {
			return err
		}
	}
	return g.db.Q.SessionRemake(ctx, tx, &dbsqlc.SessionRemakeParams{
		SessionKey: row.SessionKey, RobotCode: row.RobotCode, ConversationID: row.ConversationID, ConversationType: row.ConversationType,
		Owner: string(g.f.From.Lease.Owner), Term: g.done.Lease.Term, LastSeq: last,
	})
}

func (g *personErasure) eraseMemory(ctx context.Context, tx pgx.Tx) error {
	rows, err := g.factsThere(ctx, tx)
	if err != nil {
		return err
	}
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	if err := g.forgetThere(ctx, tx, ids, g.f.From.Lease.Key); err != nil {
		return err
	}
	if g.f.Group != "" {
		return g.deleteSchedules(ctx, tx)
	}
	if g.f.Self {
		if err := g.db.Q.PersonErasureCount(ctx, tx, &dbsqlc.PersonErasureCountParams{People: g.hashes(), Day: g.dayOfErasure()}); err != nil {
			return err
		}
	}
	if err := g.db.Q.SenderIDsForget(ctx, tx, &dbsqlc.SenderIDsForgetParams{People: g.who.ids, Robot: string(g.f.Robot)}); err != nil {
		return err
	}
	if err := g.eraseRecords(ctx, tx); err != nil {
		return err
	}
	return g.db.Q.MemoriesUnpromote(ctx, tx, &dbsqlc.MemoriesUnpromoteParams{People: g.who.ids, RobotSessions: g.robotSessions()})
}
