package erasure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/memory/similarity"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/identity"
	"ebb/sql/pg"
)

// From this many source events, only a message that says the memory is its source. Below, all messages of the author
// are, where none says it: a model can use other words.
const wideSource = 8

// tellingRows is a page of sessions that repeat a memory.
const tellingRows = 200

// factPlan is the plan of an erasure of one fact: its values, what says it, and what repeats it. It is read before the erasure, and once
// more under the locks of its source sessions.
type factPlan struct {
	store *Store
	from  memory.Asking
	only  []string // senders whose messages may be wiped; empty: all
	rows  []dbsqlc.MemorySourceRow
	ids   map[int64][]string // all ids of each memory's author
	grown bool               // rows changed after the affected sessions were listed
	like  similarity.Set
	// Memories that no source message says, although the source is small.
	unsaid map[int64]bool
	turns  map[sessions.Key][]turnSpan
}

func (s *Store) newFactPlan(from memory.Asking, like similarity.Set) *factPlan {
	return &factPlan{store: s, from: from, like: like, unsaid: map[int64]bool{}, ids: map[int64][]string{}, turns: map[sessions.Key][]turnSpan{}}
}

// factErasure executes a plan.
type factErasure struct {
	store *Store
	plan  *factPlan
	done  *memory.Forgotten
}

// A session saved the memory once more, or committed its source, during the erasure.
var errSavedAgain = errors.New("a session saved the memory again during its erasure")

// ForgetMemory implements memory.Erasures. Each session is one transaction, as in [Store.ForgetPerson]. Sessions that
// repeat the memory come before its source sessions, since the sources identify the repeats. The asking session comes
// last, with the memory's rows, so that an interrupted process is asked again. Work that the erasure waits for may
// save the memory again: then the erasure starts over.
func (s *Store) ForgetMemory(ctx context.Context, id int64, from memory.Asking) (memory.Forgotten, error) {
	done := memory.Forgotten{Lease: from.Lease}
	u := &factErasure{store: s, plan: s.newFactPlan(from, similarity.New()), done: &done}
	ctx = s.releaseWhileWaiting(ctx, from.Lease)
	err := u.plan.read(ctx, id)
	if err == nil {
		err = retryOn(errSavedAgain, func(final bool) error { return u.eraseEverywhere(ctx, final) })
	}
	if err != nil {
		return done, fmt.Errorf("forgetting memory %d: %w", id, pg.AsRefused(err))
	}
	return done, s.awaitFrames(ctx)
}

func (f *factPlan) read(ctx context.Context, id int64) (err error) {
	if f.only, err = f.store.identities.IDs(ctx, f.store.db.Pool, pg.RobotOf(f.from.Lease.Key), f.from.Only); err != nil {
		return err
	}
	if err := f.addValues(ctx, f.store.db.Pool, id); err != nil {
		return err
	}
	if err := f.addSame(ctx, f.store.db.Pool); err != nil {
		return err
	}
	return f.withinGroup(ctx, f.store.db.Pool)
}

func (u *factErasure) eraseEverywhere(ctx context.Context, final bool) error {
	u.plan.grown = false
	keys, err := u.plan.sessionsToErase(ctx)
	if err != nil {
		return err
	}
	asking := u.plan.from.Lease.Key
	for _, key := range keys {
		if u.plan.from.Lease.Owner != "" && key == asking {
			continue
		}
		if err := u.eraseHeld(ctx, key, nil, func(pgx.Tx) error { return nil }); err != nil {
			return fmt.Errorf("session %s: %w", key, err)
		}
	}
	if u.plan.from.Lease.Owner == "" {
		asking = ""
	}
	locked, err := u.store.readersOf(ctx, u.plan.rowIDs())
	if err != nil {
		return err
	}
	locked = append(locked, u.plan.sourceSessions()...)
	return u.eraseHeld(ctx, asking, locked, func(tx pgx.Tx) error {
		if err := u.rereadSources(ctx, tx); err != nil {
			return err
		}
		if u.plan.grown && !final {
			return errSavedAgain
		}
		if err := u.plan.withinGroup(ctx, tx); err != nil { // it may be the team's meanwhile
			return err
		}
		return u.deleteRows(ctx, tx)
	})
}

// withinGroup returns [memory.ErrOthersKnow] if an erasure restricted to a group would delete a row of the team or of
// a person.
func (f *factPlan) withinGroup(ctx context.Context, db dbsqlc.DBTX) error {
	if !f.from.GroupOnly {
		return nil
	}
	ids, err := f.store.withDerived(ctx, db, f.rowIDs())
	if err != nil {
		return err
	}
	scopes, err := f.store.db.Q.MemoryScopes(ctx, db, ids)
	if err != nil {
		return err
	}
	for _, sc := range scopes {
		if sc.Scope != memory.ScopeGroup && sc.Scope != memory.ScopeSession {
			return memory.ErrOthersKnow
		}
	}
	return nil
}

func (f *factPlan) rowIDs() []int64 {
	ids := make([]int64, len(f.rows))
	for i := range f.rows {
		ids[i] = f.rows[i].ID
	}
	return ids
}

// rereadSources is for locked source sessions, which save no row until the transaction ends.
func (u *factErasure) rereadSources(ctx context.Context, tx pgx.Tx) error {
	clear(u.plan.turns)
	for i, m := range u.plan.rows {
		placed, err := u.plan.withPlace(ctx, tx, m)
		if err != nil {
			return err
		}
		if placed.EndSeq == m.EndSeq || m.Kind == memory.KindDigest {
			continue
		}
		u.plan.rows[i], u.plan.grown = placed, true
		if err := u.plan.learnSources(ctx, tx, placed); err != nil {
			return err
		}
	}
	return u.plan.addSame(ctx, tx)
}

// A digest has no source.
func (f *factPlan) sourceSessions() []sessions.Key {
	said := map[sessions.Key]bool{}
	for _, m := range f.rows {
		if m.Kind != memory.KindDigest {
			said[m.SourceSession] = true
		}
	}
	return slices.Sorted(maps.Keys(said))
}

// eraseHeld locks the session, the readers of its digests, and others, in the order of their keys. It also runs the function in its
// transaction. An empty key wipes nothing.
func (u *factErasure) eraseHeld(ctx context.Context, key sessions.Key, others []sessions.Key, also func(pgx.Tx) error) error {
	return retryOn(errStale, func(final bool) error {
		p, err := u.prepareSession(ctx, key, final)
		if err != nil {
			return err
		}
		locked := others
		if p != nil {
			locked = slices.Concat(others, p.readers, []sessions.Key{key})
		}
		return u.atOnce(ctx, func(tx pgx.Tx) error {
			if err := u.store.db.LockSessions(ctx, tx, locked); err != nil {
				return err
			}
			if p != nil {
				if err := u.eraseInSession(ctx, tx, p); err != nil {
					return err
				}
			}
			return also(tx)
		})
	})
}

// atOnce counts the changes of do only when the transaction commits.
func (u *factErasure) atOnce(ctx context.Context, do func(pgx.Tx) error) error {
	before := *u.done
	err := u.store.db.InTx(ctx, func(tx pgx.Tx) error {
		*u.done = before // it may run more than once
		return do(tx)
	})
	if err != nil {
		*u.done = before
	}
	return err
}

func (u *factErasure) deleteRows(ctx context.Context, tx pgx.Tx) error {
	digests := []int64{}
	for _, m := range u.plan.rows {
		if m.Kind == memory.KindDigest {
			digests = append(digests, m.ID)
		}
	}
	if err := u.store.db.Q.DigestsDrop(ctx, tx, digests); err != nil {
		return err
	}
	return u.store.forgetFacts(ctx, tx, u.plan.rowIDs(), u.plan.from.Lease.Key, u.done)
}

// A later value is another fact to its people.
func (f *factPlan) addValues(ctx context.Context, db dbsqlc.DBTX, id int64) error {
	m, err := f.store.db.Q.MemorySource(ctx, db, id)
	if err != nil {
		return pg.AsNotFound(err)
	}
	for todo := []dbsqlc.MemorySourceRow{m}; len(todo) > 0; todo = todo[1:] {
		if slices.ContainsFunc(f.rows, func(m dbsqlc.MemorySourceRow) bool { return m.ID == todo[0].ID }) {
			continue
		}
		if err := f.addMemory(ctx, db, todo[0]); err != nil {
			return err
		}
		older, err := f.formerValues(ctx, db, todo[0])
		if err != nil {
			return err
		}
		todo = append(todo, older...)
	}
	return nil
}

// formerValues includes consolidated and similar facts that the memory repeats. The others lost nothing by its content.
func (f *factPlan) formerValues(ctx context.Context, db dbsqlc.DBTX, m dbsqlc.MemorySourceRow) ([]dbsqlc.MemorySourceRow, error) {
	older, err := f.store.db.Q.MemoriesBefore(ctx, db, m.ID)
	if err != nil || len(older) == 0 {
		return nil, err
	}
	others, err := f.store.db.Q.MemoriesToldWith(ctx, db, m.ID)
	if err != nil {
		return nil, err
	}
	var list []dbsqlc.MemorySourceRow
	for _, o := range older {
		if o.Corrected || f.like.RepeatsSaying(o.Content) || similarity.Retells(m.Content, o.Content, others) {
			list = append(list, dbsqlc.MemorySourceRow{
				ID: o.ID, Scope: o.Scope, ScopeID: o.ScopeID, Kind: o.Kind, SourceSession: o.SourceSession, StartSeq: o.StartSeq,
				EndSeq: o.EndSeq, SaidBy: o.SaidBy, Content: o.Content, CreatedAt: o.CreatedAt, Consolidated: o.Consolidated,
			})
		}
	}
	return list, nil
}

func (f *factPlan) addMemory(ctx context.Context, db dbsqlc.DBTX, m dbsqlc.MemorySourceRow) error {
	f.grown = true
	if m.Kind == memory.KindDigest { // it summarizes many senders, which stays
		f.rows = append(f.rows, m)
		return nil
	}
	m, err := f.withPlace(ctx, db, m)
	if err != nil {
		return err
	}
	if f.ids[m.ID], err = f.store.identities.IDs(ctx, db, pg.RobotOf(m.SourceSession), m.SaidBy); err != nil {
		return err
	}
	f.rows = append(f.rows, m)
	f.like.Add(m.Content)
	f.like.AddSaying(m.Content)
	return f.learnSources(ctx, db, m)
}

// An erased source message counts as saying the memory: an erasure of another fact of it, or an earlier try, took it.
// If it was erased for another reason, less is wiped.
func (f *factPlan) learnSources(ctx context.Context, db dbsqlc.DBTX, m dbsqlc.MemorySourceRow) error {
	if m.EndSeq-m.StartSeq >= wideSource {
		return nil
	}
	said, err := f.store.db.Q.EventsSaid(ctx, db, &dbsqlc.EventsSaidParams{SessionKey: m.SourceSession, StartSeq: m.StartSeq, EndSeq: m.EndSeq})
	if err != nil {
		return err
	}
	said = slices.DeleteFunc(said, func(e dbsqlc.EventsSaidRow) bool { return !f.mayHaveSaid(e.SenderID, m) })
	own, unsaid := similarity.New(), true
	own.AddSaying(m.Content) // a shared identifier or clause is not the fact
	for _, e := range said {
		if e.Content == sessions.ErasedText {
			unsaid = false
			continue
		}
		f.like.AddSource(e.Content, m.Content, len(said) == 1)
		unsaid = unsaid && !own.RepeatsSaying(e.Content)
	}
	f.unsaid[m.ID] = unsaid
	return nil
}

func (f *factPlan) mayHaveSaid(sender sessions.UserID, m dbsqlc.MemorySourceRow) bool {
	return m.SaidBy == "" || slices.Contains(f.ids[m.ID], string(sender))
}

// withPlace finds the events of a memory. A memory saved by a turn has that turn's messages, and no events while the
// turn is not in the log.
func (f *factPlan) withPlace(ctx context.Context, db dbsqlc.DBTX, m dbsqlc.MemorySourceRow) (dbsqlc.MemorySourceRow, error) {
	if m.EndSeq != 0 {
		return m, nil
	}
	turns, known := f.turns[m.SourceSession]
	if !known {
		var err error
		if turns, err = f.store.turnSpans(ctx, db, m.SourceSession); err != nil {
			return m, err
		}
		f.turns[m.SourceSession] = turns
	}
	if t, found := turnOf(turns, m.Turn, m.CreatedAt); found {
		m.StartSeq, m.EndSeq = t.first, t.asked
	}
	return m, nil
}

// addSame adds repeats from the same events: a flush may save a turn's fact again in its own words.
func (f *factPlan) addSame(ctx context.Context, db dbsqlc.DBTX) error {
	for _, m := range slices.Clone(f.rows) {
		if m.Kind == memory.KindDigest {
			continue
		}
		others, err := f.store.db.Q.MemoriesBeside(ctx, db, &dbsqlc.MemoriesBesideParams{SessionKey: m.SourceSession, Ids: f.rowIDs()})
		if err != nil {
			return err
		}
		for _, row := range others {
			if !similarity.SameStatement(row.Content, m.Content) {
				continue
			}
			o, err := f.withPlace(ctx, db, dbsqlc.MemorySourceRow(row))
			if err != nil {
				return err
			}
			if o.StartSeq <= m.EndSeq && m.StartSeq <= o.EndSeq {
				if err := f.addMemory(ctx, db, o); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// sessionsToErase lists the places where the memory could be read and repeated, then those where it was said.
func (f *factPlan) sessionsToErase(ctx context.Context) ([]sessions.Key, error) {
	said := f.sourceSessions()
	speakers, of := identity.ByRobot{}, newScopeIDs()
	for _, m := range f.rows {
		if m.SaidBy != "" {
			speakers.Add(m.SourceSession, m.SaidBy)
		}
		of.add(m.Scope, m.ScopeID, m.SourceSession)
	}
	p := &dbsqlc.SessionsTellingParams{
		Besides: asStrings(said), Teams: of.teams, SessionKeys: of.sessions, Groups: of.groups,
		Pieces: append([]string{}, f.like.Pieces()...), MaxRows: tellingRows,
	}
	var err error
	if p.Speakers, err = f.store.identities.AllIDs(ctx, f.store.db.Pool, speakers); err != nil {
		return nil, err
	}
	if p.Users, err = f.store.identities.AllIDs(ctx, f.store.db.Pool, of.users); err != nil {
		return nil, err
	}
	var keys []sessions.Key
	for more := len(said) > 0 && len(p.Pieces) > 0; more; {
		telling, err := f.store.db.Q.SessionsTelling(ctx, f.store.db.Pool, p)
		if err != nil {
			return nil, err
		}
		if more = len(telling) == tellingRows; more {
			p.AfterKey = string(telling[len(telling)-1])
		}
		keys = append(keys, telling...)
	}
	return append(keys, said...), nil
}

// preparedSession is what an erasure found in a session before it locks that.
type preparedSession struct {
	log     *logReading
	gone    goneContent
	draft   *summaryDraft
	readers []sessions.Key // sessions that read the digests of the events
}

// prepareSession runs before the session is locked. It returns nil for a deleted session, and for an empty key.
func (u *factErasure) prepareSession(ctx context.Context, key sessions.Key, final bool) (*preparedSession, error) {
	if key == "" {
		return nil, nil
	}
	here := false
	theirs := func(e *dbsqlc.LogWalkRow) bool {
		return slices.ContainsFunc(u.plan.rows, func(m dbsqlc.MemorySourceRow) bool {
			if !u.plan.mayHaveSaid(e.SenderID, m) || len(u.plan.only) > 0 && !slices.Contains(u.plan.only, string(e.SenderID)) || m.Kind == memory.KindDigest {
				return false
			}
			if m.SourceSession == key && m.StartSeq <= e.Seq && e.Seq <= m.EndSeq {
				return m.SaidBy != "" && u.plan.unsaid[m.ID] || u.plan.like.Repeats(e.Content)
			}
			return m.SaidBy != "" && u.plan.like.RepeatsSaying(e.Content) // they repeated it
		})
	}
	for _, m := range u.plan.rows {
		here = here || m.SourceSession == key && m.Kind != memory.KindDigest
	}
	repeats := u.plan.like.RepeatsFar
	if here {
		repeats = u.plan.like.Repeats
	}
	p := &preparedSession{log: newReading(key, theirs, repeats), gone: goneContent{repeats: repeats}}
	for _, m := range u.plan.rows {
		if m.Kind != memory.KindDigest {
			p.gone.facts = append(p.gone.facts, m.Content)
		}
	}
	if err := u.store.readLog(ctx, u.store.db.Pool, p.log); err != nil {
		return nil, err
	}
	seqs, _, _ := placesOf(p.log.found)
	var err error
	if p.readers, err = u.store.digestReaders(ctx, key, seqs); err != nil {
		return nil, err
	}
	p.draft, err = u.store.draftSummaries(ctx, key, seqs, p.gone, final)
	if errors.Is(err, sessions.ErrNotFound) && key != u.plan.from.Lease.Key {
		return nil, nil
	}
	return p, err
}

func (u *factErasure) eraseInSession(ctx context.Context, tx pgx.Tx, p *preparedSession) error {
	row, err := u.store.db.Q.SessionLock(ctx, tx, p.log.key)
	if errors.Is(err, pgx.ErrNoRows) && p.log.key != u.plan.from.Lease.Key {
		return nil
	}
	if err != nil {
		return pg.AsNotFound(err)
	}
	if err := u.store.readRest(ctx, tx, &row, p.log); err != nil {
		return err
	}
	if len(p.log.found) > 0 {
		if err := u.store.awaitOpenWork(ctx, tx, &row, u.plan.from.Lease); err != nil {
			return err
		}
	}
	return u.store.wipeEvents(ctx, tx, &row, p.log.found, p.gone, p.draft, u.plan.from, u.done)
}

// wipeEvents leaves memory unchanged. The asking turn keeps its session.
func (s *Store) wipeEvents(
	ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, events []erasedEvent, gone goneContent, d *summaryDraft,
	from memory.Asking, done *memory.Forgotten,
) error {
	if seqs, aside, messages := placesOf(events); len(events) > 0 {
		e := &eventErasure{store: s, tx: tx, row: row, seqs: seqs, aside: aside, goneContent: gone, draft: d}
		if err := e.eraseAll(ctx); err != nil {
			return err
		}
		done.Sessions++
		done.Messages += messages
		done.Add(e.done)
		done.Embeddings += e.vectors
	}
	return s.keepAsking(ctx, tx, row, from, done)
}
