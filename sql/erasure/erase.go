package erasure

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/compactions"
	"ebb/sql/dbsqlc"
	"ebb/sql/media"
	"ebb/sql/pg"
	"ebb/sql/spend"
	"ebb/sql/vectors"
)

// Erase implements sessions.Eraser. It deletes the facts of each flush whose range has one of the events, since a fact
// does not record its source event.
func (s *Store) Erase(ctx context.Context, key sessions.Key, seqs []int64) (sessions.Erased, error) {
	return s.EraseEvents(ctx, key, seqs, nil)
}

// EraseEvents is [Store.Erase] by places, ids or both. An id can name a message without a place: a dead letter, or a
// waiting one, which then gets no answer.
func (s *Store) EraseEvents(ctx context.Context, key sessions.Key, seqs, ids []int64) (sessions.Erased, error) {
	var done sessions.Erased
	err := s.db.Revive(ctx, s.db.Pool.Pipeline(), key)
	if err != nil {
		return done, fmt.Errorf("erasing %d events: %w", len(seqs)+len(ids), err)
	}
	err = retryOn(errStale, func(final bool) error {
		d, readers, err := s.draftEvents(ctx, key, seqs, ids, final)
		if err != nil {
			return err
		}
		return s.db.WithSession(ctx, key, func(tx pgx.Tx, row *dbsqlc.Session) (err error) {
			if err := s.awaitOpenWork(ctx, tx, row, sessions.Lease{}); err != nil {
				return err
			}
			done, err = s.eraseEvents(ctx, tx, row, seqs, ids, d)
			return err
		}, readers...)
	})
	if err == nil {
		err = s.awaitFrames(ctx)
	}
	if err != nil {
		return sessions.Erased{}, fmt.Errorf("erasing %d events: %w", len(seqs)+len(ids), pg.AsRefused(err))
	}
	return done, nil
}

// readers are those of the memories that go with the events.
func (s *Store) draftEvents(
	ctx context.Context, key sessions.Key, seqs, ids []int64, final bool,
) (d *summaryDraft, readers []sessions.Key, err error) {
	seqs, _, err = s.placesOfIDs(ctx, s.db.Pool, key, seqs, ids)
	if err != nil {
		return nil, nil, err
	}
	facts, err := s.memoriesOf(ctx, s.db.Pool, key, seqs)
	if err == nil {
		facts, err = s.withDerived(ctx, s.db.Pool, facts)
	}
	if err != nil {
		return nil, nil, err
	}
	contents, err := s.db.Q.MemoryContents(ctx, s.db.Pool, append([]int64{}, facts...))
	if err != nil {
		return nil, nil, err
	}
	if readers, err = s.readersOf(ctx, facts); err != nil {
		return nil, nil, err
	}
	d, err = s.draftSummaries(ctx, key, seqs, goneContent{facts: contents}, final)
	return d, readers, err
}

func (s *Store) eraseEvents(
	ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, seqs, ids []int64, d *summaryDraft,
) (done sessions.Erased, err error) {
	key := row.SessionKey
	seqs, aside, err := s.placesOfIDs(ctx, tx, key, seqs, ids)
	if err != nil {
		return done, err
	}
	missing, err := s.db.Q.EventsMissing(ctx, tx, &dbsqlc.EventsMissingParams{SessionKey: key, Seqs: seqs})
	if err != nil || len(seqs)+len(aside) == 0 {
		return done, err
	}
	if len(missing) > 0 {
		return done, fmt.Errorf("there is no event %d: %w", missing[0], sessions.ErrNotFound)
	}
	e := eventErasure{store: s, tx: tx, row: row, seqs: seqs, aside: aside, draft: d}
	err = e.eraseAll(ctx)
	return e.done, err
}

// placesOfIDs adds the places of ids, in order. Ids without a place are returned aside.
func (s *Store) placesOfIDs(ctx context.Context, db dbsqlc.DBTX, key sessions.Key, seqs, ids []int64) (places, aside []int64, err error) {
	rows, err := s.db.Q.EventPlaces(ctx, db, &dbsqlc.EventPlacesParams{SessionKey: key, Ids: append([]int64{}, ids...)})
	if err != nil {
		return nil, nil, err
	}
	places, found := append([]int64{}, seqs...), map[int64]bool{}
	for _, r := range rows {
		if found[r.ID] = true; r.Seq > 0 {
			places = append(places, r.Seq)
		} else {
			aside = append(aside, r.ID)
		}
	}
	for _, id := range ids {
		if !found[id] {
			return nil, nil, fmt.Errorf("there is no event with the id %d: %w", id, sessions.ErrNotFound)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(places))), aside, nil
}

// eraseAll searches by the words of the events before these are wiped.
func (e *eventErasure) eraseAll(ctx context.Context) error {
	before, err := e.viewTokens(ctx)
	if err != nil {
		return err
	}
	steps := []func(context.Context) error{e.eraseMemories, e.healSummaries, e.eraseRepeats, e.wipeText, e.trimUndoData, e.eraseBodies}
	if len(e.seqs) == 0 {
		steps = []func(context.Context) error{e.eraseQuotesOf} // an event without a place has no derived rows
	}
	for _, step := range append(steps, e.eraseUnplaced, e.eraseCalls, e.deleteSchedules, e.sweepMedia) {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := e.store.trimPeople(ctx, e.tx, e.row.SessionKey); err != nil { // an erased message has no quote
		return err
	}
	if err := e.store.db.Q.JobDelete(ctx, e.tx, e.row.SessionKey); err != nil {
		return err
	}
	after, err := e.viewTokens(ctx)
	if err != nil {
		return err
	}
	if err := e.store.db.Q.SessionErased(ctx, e.tx, &dbsqlc.SessionErasedParams{SessionKey: e.row.SessionKey, Freed: before - after}); err != nil {
		return err
	}
	return e.store.endTerms(ctx, e.tx, false, e.row.SessionKey)
}

// viewTokens is the size of the changed part of the view. Quotes of an event stand after it.
func (e *eventErasure) viewTokens(ctx context.Context) (int64, error) {
	after := e.row.CompactedSeq
	if len(e.seqs) > 0 {
		after = max(after, e.seqs[0]-1)
	}
	return e.store.db.Q.ViewTokens(ctx, e.tx, &dbsqlc.ViewTokensParams{SessionKey: e.row.SessionKey, AfterSeq: after})
}

// eraseRepeats wipes repeats outside of summaries and memory.
func (e *eventErasure) eraseRepeats(ctx context.Context) error {
	key := e.row.SessionKey
	replies, err := e.store.db.Q.OutboxErase(ctx, e.tx, &dbsqlc.OutboxEraseParams{SessionKey: key, Erased: sessions.ErasedText, Seqs: e.seqs, At: time.Now()})
	if err != nil {
		return err
	}
	trimmed, err := e.trimReplies(ctx)
	if err != nil {
		return err
	}
	e.done.Replies = int(replies) + trimmed
	if err := e.store.db.Q.CompactionsErase(ctx, e.tx, &dbsqlc.CompactionsEraseParams{
		SessionKey: key, FirstSeq: e.seqs[0], Seqs: e.seqs,
	}); err != nil {
		return err
	}
	return e.eraseQuotesOf(ctx)
}

func (e *eventErasure) eraseQuotesOf(ctx context.Context) error {
	key := e.row.SessionKey
	quotes, err := e.store.db.Q.QuotesOf(ctx, e.tx, &dbsqlc.QuotesOfParams{
		SessionKey: key, Erased: sessions.ErasedText, Seqs: append([]int64{}, e.seqs...),
		Aside: append([]int64{}, e.aside...), People: append([]string{}, e.who.ids...), Nicks: append([]string{}, e.who.nicks...),
	})
	if err != nil {
		return err
	}
	hashes := make([][]byte, 0, len(quotes))
	var changed []int64
	for _, q := range quotes {
		hashes = append(hashes, vectors.Hash(q.Content))
		seq, err := e.store.db.Q.QuoteErase(ctx, e.tx, &dbsqlc.QuoteEraseParams{
			SessionKey: key, ID: q.ID, Content: withoutQuote(q.Content, q.Quoted), Erased: sessions.ErasedText,
		})
		if err != nil {
			return err
		}
		if seq > 0 {
			changed = append(changed, seq)
		}
	}
	if err := e.store.logs.ForgetChanged(ctx, e.tx, key, changed); err != nil {
		return err
	}
	vectors, err := e.store.eraseVectors(ctx, e.tx, hashes)
	e.vectors += int(vectors)
	return err
}

// withoutQuote does not depend on the name of the quoted author.
func withoutQuote(content, quoted string) string {
	lead := sessions.QuoteLead("", quoted)
	if _, own, ok := strings.Cut(content, lead[strings.Index(lead, ": "):]); ok && quoted != "" {
		return sessions.QuoteLead("", sessions.ErasedText) + own
	}
	return content
}

func (e *eventErasure) eraseMemories(ctx context.Context) error {
	if e.repeats != nil {
		n, vectors, err := e.store.trimDigests(ctx, e.tx, &dbsqlc.DigestsTellingParams{SessionKey: e.row.SessionKey, Seqs: e.seqs}, e.repeats)
		e.done.Memories += n
		e.vectors += vectors
		return err
	}
	ids, err := e.store.memoriesOf(ctx, e.tx, e.row.SessionKey, e.seqs)
	if err != nil {
		return err
	}
	if ids, err = e.store.withDerived(ctx, e.tx, ids); err != nil {
		return err
	}
	facts, vectors, err := e.store.deleteDerived(ctx, e.tx, ids)
	e.facts = append(e.facts, facts...)
	e.done.Memories += len(facts)
	e.vectors += vectors
	return err
}

func (e *eventErasure) wipeText(ctx context.Context) error {
	e.done.Events = len(e.seqs)
	hashes, err := e.store.db.Q.EventsHashes(ctx, e.tx, &dbsqlc.EventsHashesParams{
		SessionKey: e.row.SessionKey, Seqs: e.seqs, Erased: sessions.ErasedText,
	})
	if err != nil {
		return err
	}
	vectors, err := e.store.eraseVectors(ctx, e.tx, hashes)
	if e.vectors += int(vectors); err != nil {
		return err
	}
	if err := e.store.db.Q.EventsErase(ctx, e.tx, &dbsqlc.EventsEraseParams{
		SessionKey: e.row.SessionKey, Seqs: e.seqs, Erased: sessions.ErasedText, Tokens: sessions.ErasedTokens,
	}); err != nil {
		return err
	}
	return e.store.logs.Forget(ctx, e.tx, e.row.SessionKey, e.seqs)
}

func (e *eventErasure) eraseUnplaced(ctx context.Context) error {
	if len(e.aside) == 0 {
		return nil
	}
	said, err := e.store.db.Q.AsideErase(ctx, e.tx, &dbsqlc.AsideEraseParams{
		SessionKey: e.row.SessionKey, Ids: e.aside, Erased: sessions.ErasedText, Tokens: sessions.ErasedTokens,
	})
	if err != nil {
		return err
	}
	e.done.Events += len(said)
	hashes := make([][]byte, len(said))
	for i, content := range said {
		hashes[i] = vectors.Hash(content)
	}
	vectors, err := e.store.eraseVectors(ctx, e.tx, hashes)
	e.vectors += int(vectors)
	return err
}

func (e *eventErasure) eraseCalls(ctx context.Context) error {
	if err := e.store.db.Q.ApprovalsErase(ctx, e.tx, &dbsqlc.ApprovalsEraseParams{
		SessionKey: e.row.SessionKey, Seqs: append([]int64{}, e.seqs...), Aside: append([]int64{}, e.aside...), At: time.Now(),
	}); err != nil {
		return err
	}
	if err := e.store.db.Q.BrokenRunsErase(ctx, e.tx, &dbsqlc.BrokenRunsEraseParams{
		SessionKey: e.row.SessionKey, Seqs: append([]int64{}, e.seqs...), Erased: sessions.ErasedText,
	}); err != nil {
		return err
	}
	return e.store.db.Q.ApprovedRunsErase(ctx, e.tx, &dbsqlc.ApprovedRunsEraseParams{SessionKey: e.row.SessionKey, Erased: sessions.ErasedText})
}

func (e *eventErasure) deleteSchedules(ctx context.Context) error {
	return e.store.db.Q.SchedulesErase(ctx, e.tx, &dbsqlc.SchedulesEraseParams{
		SessionKey: e.row.SessionKey, Seqs: append([]int64{}, e.seqs...), Aside: append([]int64{}, e.aside...),
	})
}

// sweepMedia comes last: the messages have lost their lists of attachments.
func (e *eventErasure) sweepMedia(ctx context.Context) error {
	if err := e.store.db.Q.FilesErase(ctx, e.tx, &dbsqlc.FilesEraseParams{
		SessionKey: e.row.SessionKey, Seqs: append([]int64{}, e.seqs...), Aside: append([]int64{}, e.aside...),
	}); err != nil {
		return err
	}
	return media.Sweep(ctx, e.tx, e.store.db.Q, e.row.SessionKey)
}

// trimUndoData removes the events and all memory from undo data.
func (e *eventErasure) trimUndoData(ctx context.Context) error {
	key := e.row.SessionKey
	rows, err := e.store.db.Q.CompactionsWithView(ctx, e.tx, key)
	if err != nil {
		return err
	}
	for _, r := range rows {
		var v compactions.ViewBefore
		if err := json.Unmarshal(r.ViewBefore, &v); err != nil {
			return fmt.Errorf("reading the view before compaction %d: %w", r.ID, err)
		}
		p := &dbsqlc.CompactionViewSetParams{SessionKey: key, ID: r.ID}
		if r.Gen == e.row.Gen && r.UndoneAt == nil {
			shown := len(v.Shown)
			v.Shown = slices.DeleteFunc(v.Shown, func(sh compactions.ShownBefore) bool {
				_, erased := slices.BinarySearch(e.seqs, sh.Seq)
				return erased
			})
			if len(v.Shown) == shown && v.Pinned == "" {
				continue
			}
			v.Pinned = ""
			if p.ViewBefore, err = json.Marshal(v); err != nil {
				return err
			}
		}
		if err := e.store.db.Q.CompactionViewSet(ctx, e.tx, p); err != nil {
			return err
		}
	}
	return nil
}

func (e *eventErasure) eraseBodies(ctx context.Context) error {
	deleted, err := e.store.db.Q.BlobsSweep(ctx, e.tx, &dbsqlc.BlobsSweepParams{SessionKey: e.row.SessionKey, AfterSeq: e.row.CompactedSeq})
	e.done.Blobs = len(deleted)
	return err
}

// Delete implements sessions.Eraser. A message that arrives meanwhile creates the session again: at once when its
// statement does not see the session, otherwise at the next Waiting.
func (s *Store) Delete(ctx context.Context, key sessions.Key) (sessions.Deleted, error) {
	var done sessions.Deleted
	err := s.db.WithSession(ctx, key, func(tx pgx.Tx, _ *dbsqlc.Session) (err error) {
		if err := s.awaitSend(ctx, tx, key); err != nil {
			return err
		}
		done, err = s.deleteSession(ctx, tx, key, 0, nil)
		return err
	})
	if err == nil {
		err = s.awaitFrames(ctx)
	}
	if err != nil {
		return sessions.Deleted{}, fmt.Errorf("deleting a session: %w", err)
	}
	return done, nil
}

// deleteSession keeps the asking message, later ones, and some answers to these.
func (s *Store) deleteSession(ctx context.Context, tx pgx.Tx, key sessions.Key, asked int64, answers []int64) (sessions.Deleted, error) {
	var done sessions.Deleted
	events, err := s.db.Q.EventsDelete(ctx, tx, &dbsqlc.EventsDeleteParams{SessionKey: key, Asked: asked, Answers: append([]int64{}, answers...)})
	if err != nil {
		return done, err
	}
	done.Events = int(events)
	if err := s.logs.Delete(ctx, tx, key); err != nil { // messages that stay get other places
		return done, err
	}
	if err := s.trimPeople(ctx, tx, key); err != nil {
		return done, err
	}
	for _, kind := range []struct {
		count  *int
		remove func(context.Context, dbsqlc.DBTX, sessions.Key) (int64, error)
	}{
		{&done.Summaries, s.db.Q.SummariesDelete},
		{&done.Compactions, s.db.Q.CompactionsDelete},
		{&done.Replies, s.db.Q.OutboxDelete},
	} {
		n, err := kind.remove(ctx, tx, key)
		if err != nil {
			return done, err
		}
		*kind.count = int(n)
	}
	blobs, err := s.db.Q.BlobsSweep(ctx, tx, &dbsqlc.BlobsSweepParams{SessionKey: key})
	if err != nil {
		return done, err
	}
	done.Blobs = len(blobs)
	if err := s.db.Q.FilesDelete(ctx, tx, key); err != nil {
		return done, err
	}
	if err := media.Sweep(ctx, tx, s.db.Q, key); err != nil {
		return done, err
	}
	memories, err := s.db.Q.MemoriesDelete(ctx, tx, string(key))
	if err != nil {
		return done, err
	}
	done.Memories = int(memories)
	if err := s.db.Q.EmbeddingsDelete(ctx, tx, string(key)); err != nil {
		return done, err
	}
	if err := spend.KeepGone(ctx, tx, key); err != nil {
		return done, err
	}
	if err := s.db.Q.Notify(ctx, tx, "|"+string(key)); err != nil { // a running turn ends
		return done, err
	}
	return done, s.db.Q.SessionDelete(ctx, tx, key)
}
