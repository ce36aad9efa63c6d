package index

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

const (
	// stepBytes bounds the text of one transaction, approximately.
	stepBytes = 4 << 20
	// MaxRead bounds the characters of an event that are indexed, and searched for the piece in a hit.
	MaxRead = 200_000
)

var errIndexed = errors.New("all is indexed")

// IndexSession indexes up to limit places of a session's log, fewer when their texts are long, and returns their number. 0: all are
// indexed.
func (s *Logs) IndexSession(ctx context.Context, key sessions.Key, limit int) (int, error) {
	n := 0
	err := s.db.InTx(ctx, func(tx pgx.Tx) (err error) {
		n, err = s.indexLog(ctx, tx, key, limit)
		return err
	})
	if errors.Is(err, errIndexed) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("indexing the log: %w", err)
	}
	return n, nil
}

// indexLog reads the log under the lock, so that it sees what an erasure left.
func (s *Logs) indexLog(ctx context.Context, tx pgx.Tx, key sessions.Key, limit int) (int, error) {
	row, err := s.db.Q.EventIndexLock(ctx, tx, key)
	if err != nil {
		return 0, err
	}
	if row.Version != TermsVersion && row.ThroughSeq > 0 {
		if err := s.clear(ctx, tx, key); err != nil {
			return 0, err
		}
		row.ThroughSeq, row.Again = 0, nil
	}
	log, err := s.db.Q.EventIndexRead(ctx, tx, key)
	if err != nil {
		return 0, err
	}
	through := min(row.ThroughSeq+int64(limit), log.LastSeq)
	if through <= row.ThroughSeq && len(row.Again) == 0 {
		return 0, errIndexed
	}
	texts, through, err := s.read(ctx, tx, key, row.ThroughSeq, through)
	if err != nil {
		return 0, err
	}
	if len(row.Again) > 0 {
		rows, err := s.db.Q.EventsToIndexAgain(ctx, tx, &dbsqlc.EventsToIndexAgainParams{SessionKey: key, Seqs: row.Again, MaxChars: MaxRead})
		if err != nil {
			return 0, err
		}
		for _, r := range rows {
			if r.Seq <= row.ThroughSeq {
				texts = appendText(texts, r.Seq, r.Content)
			}
		}
	}
	if err := s.add(ctx, tx, key, row.NextSegment, texts); err != nil {
		return 0, err
	}
	return int(through-row.ThroughSeq) + len(row.Again), s.db.Q.EventIndexSet(ctx, tx, &dbsqlc.EventIndexSetParams{
		SessionKey: key, ThroughSeq: through, NextSegment: row.NextSegment + 1, Version: TermsVersion,
	})
}

func (s *Logs) read(ctx context.Context, tx pgx.Tx, key sessions.Key, after, through int64) ([]text, int64, error) {
	rows, err := s.db.Q.EventsToIndex(ctx, tx, &dbsqlc.EventsToIndexParams{
		SessionKey: key, AfterSeq: after, ThroughSeq: through, MaxChars: MaxRead, MaxBytes: stepBytes,
	})
	if err != nil {
		return nil, 0, err
	}
	var texts []text
	for _, r := range rows {
		texts = appendText(texts, r.Seq, r.Content)
	}
	if n := len(rows); n > 0 && n < rows[0].Listed {
		through = rows[n-1].Seq
	}
	return texts, through, nil
}

func appendText(texts []text, place int64, content string) []text {
	if keys := EventTerms(content); len(keys) > 0 {
		texts = append(texts, text{place: place, terms: packTerms(keys)})
	}
	return texts
}

// add stores texts as a segment, which takes in the newest ones while these are not larger.
func (s *Logs) add(ctx context.Context, tx pgx.Tx, key sessions.Key, number int, texts []text) error {
	if len(texts) == 0 {
		return nil
	}
	p := &dbsqlc.EventTermsInsertParams{SessionKey: key}
	for _, t := range texts {
		p.Seqs, p.Terms = append(p.Seqs, t.place), append(p.Terms, t.terms)
	}
	if err := s.db.Q.EventTermsInsert(ctx, tx, p); err != nil {
		return err
	}
	segments, err := s.db.Q.SegmentsList(ctx, tx, key)
	if err != nil {
		return err
	}
	all, n, joined := newSegment(texts), len(texts), []int{}
	for i := range segments {
		if n += segments[i].Texts; segments[i].Texts > n-segments[i].Texts || n > maxTexts {
			break
		}
		older, err := s.load(ctx, tx, key, &segments[i])
		if err != nil {
			return err
		}
		older.join(all)
		all, joined = older, append(joined, segments[i].Segment)
	}
	if err := s.remove(ctx, tx, key, joined); err != nil {
		return err
	}
	return s.save(ctx, tx, key, number, all)
}

func (s *Logs) load(ctx context.Context, db dbsqlc.DBTX, key sessions.Key, row *dbsqlc.SegmentsListRow) (*segment, error) {
	blocks, err := s.db.Q.SegmentBlocks(ctx, db, &dbsqlc.SegmentBlocksParams{SessionKey: key, Segment: row.Segment})
	if err != nil {
		return nil, err
	}
	return readSegment(row.FirstSeq, row.Sizes, blocks)
}

func (s *Logs) save(ctx context.Context, tx pgx.Tx, key sessions.Key, number int, all *segment) error {
	bits, blocks := all.blocks()
	p := &dbsqlc.PostingsInsertParams{SessionKey: key, Segment: number}
	for i, b := range blocks {
		if b != nil {
			p.Blocks, p.Postings = append(p.Blocks, i), append(p.Postings, b)
		}
	}
	if err := s.db.Q.SegmentInsert(ctx, tx, &dbsqlc.SegmentInsertParams{
		SessionKey: key, Segment: number, FirstSeq: all.first, Texts: all.texts(), Bits: bits, Sizes: all.sizes,
	}); err != nil || len(p.Blocks) == 0 {
		return err
	}
	return s.db.Q.PostingsInsert(ctx, tx, p)
}

func (s *Logs) remove(ctx context.Context, tx pgx.Tx, key sessions.Key, numbers []int) error {
	if len(numbers) == 0 {
		return nil
	}
	if err := s.db.Q.PostingsDelete(ctx, tx, &dbsqlc.PostingsDeleteParams{SessionKey: key, Segments: numbers}); err != nil {
		return err
	}
	return s.db.Q.SegmentsDelete(ctx, tx, &dbsqlc.SegmentsDeleteParams{SessionKey: key, Segments: numbers})
}

// ForgetChanged is [Logs.Forget] for events whose text changed: a search reads them from the log until they are indexed again.
func (s *Logs) ForgetChanged(ctx context.Context, tx pgx.Tx, key sessions.Key, seqs []int64) error {
	if err := s.Forget(ctx, tx, key, seqs); err != nil || len(seqs) == 0 {
		return err
	}
	return s.db.Q.EventIndexAgain(ctx, tx, &dbsqlc.EventIndexAgainParams{SessionKey: key, Seqs: seqs})
}

// Forget takes the terms of events out of the index. It locks the index, so that an indexer that read the old texts has ended, and
// the next one reads what the transaction leaves.
func (s *Logs) Forget(ctx context.Context, tx pgx.Tx, key sessions.Key, seqs []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	if _, err := s.db.Q.EventIndexLock(ctx, tx, key); err != nil {
		return err
	}
	if err := s.db.Q.EventTermsDelete(ctx, tx, &dbsqlc.EventTermsDeleteParams{SessionKey: key, Seqs: seqs}); err != nil {
		return err
	}
	seqs = slices.Sorted(slices.Values(seqs))
	return s.rewrite(ctx, tx, key, func(place int64) bool {
		_, gone := slices.BinarySearch(seqs, place)
		return gone
	})
}

// Expire takes the terms of all events up to a place out of the index.
func (s *Logs) Expire(ctx context.Context, tx pgx.Tx, key sessions.Key, through int64) error {
	if _, err := s.db.Q.EventIndexLock(ctx, tx, key); err != nil {
		return err
	}
	if err := s.db.Q.EventTermsExpire(ctx, tx, &dbsqlc.EventTermsExpireParams{SessionKey: key, ThroughSeq: through}); err != nil {
		return err
	}
	return s.rewrite(ctx, tx, key, func(place int64) bool { return place <= through })
}

// Delete removes the index of a log.
func (s *Logs) Delete(ctx context.Context, tx pgx.Tx, key sessions.Key) error {
	if _, err := s.db.Q.EventIndexLock(ctx, tx, key); err != nil {
		return err
	}
	if err := s.clear(ctx, tx, key); err != nil {
		return err
	}
	return s.db.Q.EventIndexDelete(ctx, tx, key)
}

func (s *Logs) clear(ctx context.Context, tx pgx.Tx, key sessions.Key) error {
	segments, err := s.db.Q.SegmentsList(ctx, tx, key)
	if err != nil {
		return err
	}
	var numbers []int
	for _, g := range segments {
		numbers = append(numbers, g.Segment)
	}
	if err := s.remove(ctx, tx, key, numbers); err != nil {
		return err
	}
	return s.db.Q.EventTermsExpire(ctx, tx, &dbsqlc.EventTermsExpireParams{SessionKey: key, ThroughSeq: lastPlace})
}

// rewrite writes the segments again that have some texts, without these.
func (s *Logs) rewrite(ctx context.Context, tx pgx.Tx, key sessions.Key, gone func(place int64) bool) error {
	segments, err := s.db.Q.SegmentsList(ctx, tx, key)
	if err != nil {
		return err
	}
	for i := range segments {
		g := &segments[i]
		if !has(g, gone) {
			continue
		}
		left, err := s.load(ctx, tx, key, g)
		if err != nil {
			return err
		}
		left.drop(gone)
		if err := s.remove(ctx, tx, key, []int{g.Segment}); err != nil {
			return err
		}
		if left.texts() == 0 {
			continue
		}
		if err := s.save(ctx, tx, key, g.Segment, left); err != nil {
			return err
		}
	}
	return nil
}

func has(g *dbsqlc.SegmentsListRow, gone func(place int64) bool) bool {
	for i, size := range g.Sizes {
		if size > 0 && gone(g.FirstSeq+int64(i)) {
			return true
		}
	}
	return false
}
