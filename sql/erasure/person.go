package erasure

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// ForgetPerson implements memory.Erasures. Each session is one transaction; the asking one and memory come last.
func (s *Store) ForgetPerson(ctx context.Context, f memory.Forget) (memory.Forgotten, error) {
	plan, done, err := s.planPerson(ctx, f, s.erasing)
	if err != nil {
		return memory.Forgotten{Lease: f.From.Lease}, err
	}
	defer done()
	g := &personErasure{store: s, plan: plan, keyed: plan.keyed, done: &memory.Forgotten{Lease: f.From.Lease}}
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

// personErasure executes a plan.
type personErasure struct {
	store *Store
	plan  *personPlan
	keyed dayKey
	done  *memory.Forgotten
}

func (g *personErasure) eraseEverywhere(ctx context.Context) error {
	if g.keyed.key == nil {
		var err error
		if g.keyed, err = g.store.keyOfDay(ctx); err != nil {
			return err
		}
	}
	// First, so that none stores a message behind the erasure of its session.
	if err := g.deleteSchedules(ctx, g.store.db.Pool); err != nil {
		return err
	}
	asking, spoke, whole := g.plan.forget.From.Lease.Key, false, false
	var left []int64
	for _, m := range g.plan.facts {
		left = append(left, m.ID)
	}
	for _, r := range g.plan.sessions {
		if r.SessionKey == asking {
			spoke, whole = r.Spoke, g.plan.isTheirs(r.SessionKey, r.RobotCode, r.ConversationID, r.ConversationType, g.plan.forget.Self)
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
		locked, err := g.store.readersOf(ctx, left)
		if err != nil {
			return err
		}
		if asking != "" {
			readers, err := g.readersIn(ctx, asking, sv, whole)
			if err != nil {
				return err
			}
			locked = slices.Concat(locked, readers, []sessions.Key{asking})
		}
		return g.store.db.InTx(ctx, func(tx pgx.Tx) error {
			*g.done = before
			if err := g.store.db.LockSessions(ctx, tx, locked); err != nil {
				return err
			}
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
	alone, before := g.plan.isTheirs(r.SessionKey, r.RobotCode, r.ConversationID, r.ConversationType, r.Spoke), *g.done
	hold := g.store.db.WithSession
	if g.plan.forget.From.Lease.Key != "" { // the asking session's commit makes this one durable; without it the turn asks again
		hold = g.store.db.WithSessionUnsynced
	}
	return retryOn(errStale, func(final bool) error {
		var sv *sessionSurvey
		if r.Spoke && !alone {
			var err error
			if sv, err = g.prepareSession(ctx, r.SessionKey, final); err != nil {
				return err
			}
		}
		readers, err := g.readersIn(ctx, r.SessionKey, sv, alone)
		if err != nil {
			return err
		}
		return hold(ctx, r.SessionKey, func(tx pgx.Tx, row *dbsqlc.Session) error {
			*g.done = before // it may run more than once
			if err := g.store.awaitOpenWork(ctx, tx, row, g.plan.forget.From.Lease); err != nil {
				return err
			}
			if alone {
				return g.deletePrivate(ctx, tx, r.SessionKey, 0, repeatsNothing)
			}
			return g.eraseInSession(ctx, tx, row, sv)
		}, readers...)
	})
}

// readersIn lists the sessions that read the memories which go with a session. All go with a session that goes as a whole.
func (g *personErasure) readersIn(ctx context.Context, key sessions.Key, sv *sessionSurvey, whole bool) ([]sessions.Key, error) {
	drawn, err := g.store.db.Q.MemoriesDrawn(ctx, g.store.db.Pool, &dbsqlc.MemoriesDrawnParams{SessionKey: key, People: g.plan.who.ids})
	if err != nil {
		return nil, err
	}
	if whole {
		return g.store.readersOf(ctx, idsOf(drawn))
	}
	ids, digests := g.plan.takenFrom(drawn, sv)
	readers, err := g.store.readersOf(ctx, append(ids, idsOf(digests)...))
	if err != nil || sv == nil {
		return readers, err
	}
	seqs, _, _ := placesOf(sv.erasablePlaces())
	others, err := g.store.digestReaders(ctx, key, seqs)
	return append(readers, others...), err
}

func idsOf(drawn []dbsqlc.MemoriesDrawnRow) []int64 {
	ids := make([]int64, len(drawn))
	for i, m := range drawn {
		ids[i] = m.ID
	}
	return ids
}

func (g *personErasure) prepareSession(ctx context.Context, key sessions.Key, final bool) (*sessionSurvey, error) {
	sv, err := g.plan.survey(ctx, g.store, key)
	if err != nil {
		return nil, err
	}
	seqs, _, _ := placesOf(sv.erasablePlaces())
	sv.draft, err = g.store.draftSummaries(ctx, key, seqs, g.plan.goneContentOf(sv), final)
	return sv, err
}

// Messages after the asking one stay, with answers that do not repeat the rest.
func (g *personErasure) deletePrivate(ctx context.Context, tx pgx.Tx, key sessions.Key, asked int64, repeats func(string) bool) error {
	drawn, err := g.store.db.Q.MemoriesDrawn(ctx, tx, &dbsqlc.MemoriesDrawnParams{SessionKey: key, People: g.plan.who.ids})
	if err != nil {
		return err
	}
	if err := g.forgetThere(ctx, tx, idsOf(drawn), key); err != nil {
		return err
	}
	messages, answers, err := g.store.messagesUpTo(ctx, tx, key, asked, repeats)
	if err != nil {
		return err
	}
	g.done.Messages += int(messages.Messages + messages.Answers)
	gone, err := g.store.deleteSession(ctx, tx, key, asked, answers)
	g.done.Sessions++
	g.done.Add(sessions.Erased{
		Events: gone.Events, Summaries: gone.Summaries, Memories: gone.Memories, Blobs: gone.Blobs, Replies: gone.Replies,
	})
	return err
}

// Without a survey they never spoke there: quotes of them and memories go, and nothing of the bot's own.
func (g *personErasure) eraseInSession(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, sv *sessionSurvey) error {
	e := &eventErasure{store: g.store, tx: tx, row: row, who: g.plan.who, goneContent: goneContent{repeats: repeatsNothing}}
	messages := 0
	if sv != nil {
		if row.LastSeq < sv.through {
			return errStale
		}
		if err := g.plan.surveyOn(ctx, g.store, tx, sv); err != nil {
			return err
		}
		e.seqs, _, messages = placesOf(sv.erasablePlaces())
		e.goneContent, e.draft = g.plan.goneContentOf(sv), sv.draft
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
	if err := g.eraseFacts(ctx, tx, row.SessionKey, sv); err != nil {
		return err
	}
	if err := g.removeName(ctx, tx, row.SessionKey, e.repeats); err != nil || len(e.seqs) > 0 {
		return err // with events its readers start again already
	}
	if err := g.store.db.Q.SessionErased(ctx, tx, &dbsqlc.SessionErasedParams{SessionKey: row.SessionKey}); err != nil {
		return err
	}
	return g.store.endTerms(ctx, tx, false, row.SessionKey)
}

// Digests keep the rest of their content.
func (g *personErasure) eraseFacts(ctx context.Context, tx pgx.Tx, key sessions.Key, sv *sessionSurvey) error {
	drawn, err := g.store.db.Q.MemoriesDrawn(ctx, tx, &dbsqlc.MemoriesDrawnParams{SessionKey: key, People: g.plan.who.ids})
	if err != nil {
		return err
	}
	facts, digests := g.plan.takenFrom(drawn, sv)
	if err := g.forgetThere(ctx, tx, facts, g.plan.forget.From.Lease.Key); err != nil || len(digests) == 0 {
		return err
	}
	memories, vectors, err := g.store.trimDigests(ctx, tx, &dbsqlc.DigestsTellingParams{Ids: idsOf(digests)}, sv.traits.repeats)
	g.done.Memories += memories
	g.done.Embeddings += vectors
	return err
}

// removeName also wipes waiting messages.
func (g *personErasure) removeName(ctx context.Context, tx pgx.Tx, key sessions.Key, repeats func(string) bool) error {
	who, asked := g.plan.who.ids, g.plan.asked(key)
	if err := g.eraseToolRuns(ctx, tx, key, repeats); err != nil {
		return err
	}
	waiting, err := g.store.db.Q.PersonWaiting(ctx, tx, &dbsqlc.PersonWaitingParams{
		SessionKey: key, People: who, Asked: asked, Erased: sessions.ErasedText, Tokens: sessions.ErasedTokens,
	})
	if err != nil {
		return err
	}
	g.done.Events += int(waiting)
	g.done.Messages += int(waiting)
	if err := g.store.db.Q.MentionsUnname(ctx, tx, &dbsqlc.MentionsUnnameParams{SessionKey: key, People: who}); err != nil {
		return err
	}
	if err := g.store.db.Q.PersonUnname(ctx, tx, &dbsqlc.PersonUnnameParams{SessionKey: key, People: who, Asked: asked}); err != nil {
		return err
	}
	if err := g.store.trimPeople(ctx, tx, key); err != nil {
		return err
	}
	if err := g.store.db.Q.OutboxUnname(ctx, tx, &dbsqlc.OutboxUnnameParams{
		SessionKey: key, People: who, Nicks: append([]string{}, g.plan.who.nicks...),
	}); err != nil {
		return err
	}
	return g.store.db.Q.SessionTextsErase(ctx, tx, &dbsqlc.SessionTextsEraseParams{SessionKey: key, Undone: sessions.CompactUndone})
}

// eraseToolRuns wipes tool calls of the open turn when it has the person's messages, or the calls repeat them.
func (g *personErasure) eraseToolRuns(ctx context.Context, tx pgx.Tx, key sessions.Key, repeats func(string) bool) error {
	runs, err := g.store.db.Q.ToolRunsOf(ctx, tx, &dbsqlc.ToolRunsOfParams{SessionKey: key, People: g.plan.who.ids})
	if err != nil {
		return err
	}
	for _, r := range runs {
		if !r.Theirs && !repeats(r.Arguments) && !repeats(r.Result) {
			continue
		}
		if err := g.store.db.Q.ToolRunErase(ctx, tx, &dbsqlc.ToolRunEraseParams{
			SessionKey: key, EventID: r.EventID, CallID: r.CallID, Erased: sessions.ErasedText,
		}); err != nil {
			return err
		}
	}
	return nil
}

func (g *personErasure) eraseAskingSession(ctx context.Context, tx pgx.Tx, key sessions.Key, sv *sessionSurvey) error {
	row, err := g.store.db.Q.SessionLock(ctx, tx, key)
	if err != nil {
		return pg.AsNotFound(err)
	}
	l := g.plan.forget.From.Lease
	if pg.OrZero(row.LeaseOwner) != l.Owner || row.LeaseTerm != l.Term {
		return sessions.ErrLeaseLost
	}
	if err := g.store.awaitSend(ctx, tx, key); err != nil {
		return err
	}
	message, err := g.store.db.Q.AskingMessage(ctx, tx, &dbsqlc.AskingMessageParams{SessionKey: key, Asked: g.plan.forget.From.Event, Outcome: string(sessions.ErasedAll)})
	if err == nil {
		err = g.store.db.Q.AskingUnname(ctx, tx, &dbsqlc.AskingUnnameParams{
			SessionKey: key, Asked: g.plan.forget.From.Event, Content: memory.ForgetDone(g.plan.forget.From.Language), Message: message,
		})
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	spoke := row.ConversationType == sessions.Private && g.plan.forget.Self
	if !g.plan.isTheirs(key, row.RobotCode, row.ConversationID, row.ConversationType, spoke) {
		if err := g.eraseInSession(ctx, tx, &row, sv); err != nil {
			return err
		}
		return g.store.keepAsking(ctx, tx, &row, g.plan.forget.From, g.done)
	}
	repeats := repeatsNothing
	if sv != nil {
		repeats = sv.traits.repeats
	}
	if err := g.deletePrivate(ctx, tx, key, g.plan.forget.From.Event, repeats); err != nil {
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
		if last, err = g.store.db.Q.EventsRenumber(ctx, tx, &dbsqlc.EventsRenumberParams{SessionKey: row.SessionKey, Base: base}); err != nil {
			return err
		}
	}
	return g.store.db.Q.SessionRemake(ctx, tx, &dbsqlc.SessionRemakeParams{
		SessionKey: row.SessionKey, RobotCode: row.RobotCode, ConversationID: row.ConversationID, ConversationType: row.ConversationType,
		Owner: string(g.plan.forget.From.Lease.Owner), Term: g.done.Lease.Term, LastSeq: last,
	})
}

func (g *personErasure) eraseMemory(ctx context.Context, tx pgx.Tx) error {
	rows, err := g.plan.readFacts(ctx, g.store, tx)
	if err != nil {
		return err
	}
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	if err := g.forgetThere(ctx, tx, ids, g.plan.forget.From.Lease.Key); err != nil {
		return err
	}
	if g.plan.forget.Group != "" {
		return g.deleteSchedules(ctx, tx)
	}
	if g.plan.forget.Self {
		if err := g.store.db.Q.PersonErasureCount(ctx, tx, &dbsqlc.PersonErasureCountParams{People: g.keyed.hashes(g.plan.forget.Robot, g.plan.who.ids), Day: g.keyed.date()}); err != nil {
			return err
		}
	}
	if err := g.store.db.Q.SenderIDsForget(ctx, tx, &dbsqlc.SenderIDsForgetParams{People: g.plan.who.ids, Robot: string(g.plan.forget.Robot)}); err != nil {
		return err
	}
	if err := g.eraseRecords(ctx, tx); err != nil {
		return err
	}
	return g.store.db.Q.MemoriesUnpromote(ctx, tx, &dbsqlc.MemoriesUnpromoteParams{People: g.plan.who.ids, RobotSessions: g.plan.robotSessions()})
}

// forgetThere is forgetFacts for the facts that the erasure takes.
func (g *personErasure) forgetThere(ctx context.Context, tx pgx.Tx, ids []int64, asking sessions.Key) error {
	ids, err := g.plan.withoutShared(ctx, g.store, tx, ids)
	if err != nil {
		return err
	}
	return g.store.forgetFacts(ctx, tx, ids, asking, g.done)
}
