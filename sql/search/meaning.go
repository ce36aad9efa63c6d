package search

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/memory"
	"ebb/memory/rank"
	"ebb/memory/text"
	"ebb/sessions"
	"ebb/sessions/guard"
	"ebb/sql/dbsqlc"
	"ebb/sql/facts"
	"ebb/sql/pg"
	"ebb/sql/vectors"
)

const (
	embedWait   = 300 * time.Millisecond // for a query's vector
	compareWait = 200 * time.Millisecond
	embedPause  = 15 * time.Second // after a failure; searches then do not wait
	keptQueries = 256              // cached vectors of queries
	aboveChance = 2.0              // standard deviations above the cosine by chance
	awayChance  = 0.15             // least share of the distance from there to 1
)

// No query is about these texts. Their cosines to a query are its cosine by chance, which differs between models;
// only a clearly higher one is a hit. There are ten, since some endpoints accept no more.
var unrelated = []string{
	"The tide gauge at the old harbour reads two metres.", "Glaciers carve wide valleys into granite.",
	"He tuned the harpsichord before the recital.", "Penguins huddle against the polar wind.",
	"A pinch of saffron colours the whole risotto.",
	"宋代的瓷器以青白釉闻名。", "候鸟在湿地停歇三周。", "他用毛笔抄完了整部经书。", "火山灰让土壤变得肥沃。", "望远镜里能看到土星的光环。",
}

var errPaused = errors.New("the embedding endpoint failed a moment ago")

// The floor is the lowest cosine of a hit.
func (m *meaning) vector(ctx context.Context, text string) (v []float32, floor float64, err error) {
	ctx, stop := context.WithTimeout(ctx, m.wait)
	defer stop()
	m.mu.Lock()
	chance, resting := m.chance, time.Now().Before(m.restEnd)
	m.mu.Unlock()
	v, _ = m.known.Get(text)
	if resting && (v == nil || chance == nil) {
		return nil, 0, errPaused
	}
	if chance == nil {
		if chance, err = m.embed(ctx, unrelated); err != nil {
			return nil, 0, err
		}
		m.mu.Lock()
		m.chance = chance // also when the query's own vector is late
		m.mu.Unlock()
	}
	if v == nil {
		one, err := m.embed(ctx, []string{text})
		if err != nil {
			return nil, 0, err
		}
		v = one[0]
	}
	m.known.Add(text, v)
	return v, chanceFloor(v, chance), nil
}

// A failure that is neither the caller's nor the text's starts a pause.
func (m *meaning) embed(ctx context.Context, texts []string) ([][]float32, error) {
	embedded, err := m.embedder.Embed(ctx, texts)
	if err == nil && len(embedded) != len(texts) {
		err = fmt.Errorf("%d vectors came for %d texts", len(embedded), len(texts))
	}
	if err != nil {
		fault, ok := errors.AsType[memory.EmbedFault](err)
		if !errors.Is(err, context.Canceled) && (!ok || !fault.Unfit()) {
			m.mu.Lock()
			m.restEnd = time.Now().Add(embedPause)
			m.mu.Unlock()
		}
		return nil, err
	}
	for i := range embedded {
		embedded[i] = vectors.Unit(embedded[i])
	}
	return embedded, nil
}

// chanceFloor is a cosine clearly above the mean of those to the unrelated texts.
func chanceFloor(v []float32, chance [][]float32) float64 {
	sum, squares := 0.0, 0.0
	for _, c := range chance {
		if len(c) != len(v) {
			continue
		}
		cos := vectors.Cosine(c, v)
		sum, squares = sum+cos, squares+cos*cos
	}
	n := float64(len(chance))
	mean := sum / n
	return mean + max(aboveChance*math.Sqrt(max(squares/n-mean*mean, 0)), awayChance*(1-mean))
}

// Dense finds readable texts by meaning, the nearest first; a hit's score is the cosine.
func (s *Store) Dense(ctx context.Context, r memory.Reader, q memory.Query) ([]memory.Hit, error) {
	limit := q.Limit
	if s.meaning.embedder == nil || limit <= 0 || q.Text == "" {
		return nil, nil
	}
	v, floor, err := s.meaning.vector(ctx, head(q.Text, vectors.MaxEmbedded))
	if err != nil {
		return nil, fmt.Errorf("embedding a query: %w", err)
	}
	if len(v) == 0 {
		return nil, nil
	}
	ctx, stop := context.WithTimeout(ctx, s.meaning.compare)
	defer stop()
	var hits []memory.Hit
	if q.From != memory.FromEvents {
		if hits, err = s.nearMemories(ctx, r, v, floor, limit); err != nil {
			return nil, fmt.Errorf("comparing memories: %w", err)
		}
	}
	if q.From != memory.FromMemories {
		events, err := s.nearEvents(ctx, r.Key, v, floor, limit)
		if err != nil {
			return nil, fmt.Errorf("comparing events: %w", err)
		}
		hits = append(hits, events...)
	}
	slices.SortStableFunc(hits, func(a, b memory.Hit) int {
		if a.Outdated != b.Outdated { // corrected content comes last
			if a.Outdated {
				return 1
			}
			return -1
		}
		return cmp.Compare(b.Score, a.Score)
	})
	return hits[:min(limit, len(hits))], nil
}

// One place decides about readers, before any comparison.
func (s *Store) nearMemories(ctx context.Context, r memory.Reader, v []float32, floor float64, limit int) ([]memory.Hit, error) {
	memories, err := s.visible.List(ctx, r, maxCandidates)
	if err != nil {
		return nil, err
	}
	var at vectors.Place
	by := make(map[string]memory.Memory, len(memories))
	for _, m := range memories {
		key, hash := vectors.ScopeKey(m.Scope, m.ScopeID), vectors.Hash(m.Content)
		if !slices.Contains(at.Scopes, key) {
			at.Scopes = append(at.Scopes, key)
		}
		at.Hashes, by[string(hash)] = append(at.Hashes, hash), m
	}
	found, err := s.comparer.Nearest(ctx, at, s.meaning.embedder.Model(), v, limit)
	if err != nil {
		return nil, err
	}
	var hits []memory.Hit
	var facts []memory.Memory
	for _, n := range found {
		m := by[string(n.Hash)]
		if n.Score < floor || m.ID == 0 { // two scopes may have the same text
			continue
		}
		delete(by, string(n.Hash))
		facts = append(facts, m)
		hits = append(hits, memory.Hit{
			Path: s.visible.Path(m), MemoryID: m.ID, Content: m.Content, At: m.Time(), Score: n.Score, Why: []string{whyMeaning},
		})
	}
	if err := s.identities.NameIn(ctx, r.Key, facts); err != nil {
		return nil, err
	}
	for i, m := range facts {
		hits[i].Who = m.Source()
	}
	return hits, nil
}

const whyMeaning = "similar meaning"

// nearEvents compares hashes after the texts are read: a vector whose text was erased or edited since must not bring it back.
func (s *Store) nearEvents(ctx context.Context, key sessions.Key, v []float32, floor float64, limit int) ([]memory.Hit, error) {
	found, err := s.comparer.Nearest(ctx, vectors.Place{Scopes: []string{string(key)}, Events: true}, s.meaning.embedder.Model(), v, limit)
	if err != nil {
		return nil, err
	}
	scores := make(map[int64]vectors.Near, len(found))
	seqs := make([]int64, 0, len(found))
	for _, n := range found {
		if n.Score >= floor {
			scores[n.Seq], seqs = n, append(seqs, n.Seq)
		}
	}
	if len(seqs) == 0 {
		return nil, nil
	}
	rows, err := s.db.Q.EventsNear(ctx, s.db.Pool, &dbsqlc.EventsNearParams{SessionKey: key, Seqs: seqs, MaxChars: maxBody})
	if err != nil {
		return nil, err
	}
	outdated, err := s.db.Q.EventsOutdated(ctx, s.db.Pool, &dbsqlc.EventsOutdatedParams{
		SessionKey: key, FirstSeq: slices.Min(seqs), LastSeq: slices.Max(seqs), Most: narrowRange,
	})
	if err != nil {
		return nil, err
	}
	var hits []memory.Hit
	for _, e := range rows {
		n := scores[pg.OrZero(e.Seq)]
		if !bytes.Equal(e.ContentHash, n.Hash) { // erased since
			continue
		}
		hits = append(hits, memory.Hit{
			Path: facts.EventPath(n.Seq), Seq: n.Seq, Content: e.Content, At: e.CreatedAt, Score: n.Score,
			Who: speakerName(e.Role, e.SenderNick, e.SenderID), Why: []string{whyMeaning},
			Outdated: slices.Contains(outdated, n.Seq),
		})
	}
	return hits, nil
}

func head(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n])
	}
	return text
}

// The returned function is called once, waits, and merges both rankings. After a failure it returns words unchanged.
func (s *Store) startDense(ctx context.Context, r memory.Reader, q memory.Query) func(words []memory.Hit) []memory.Hit {
	if s.meaning.embedder == nil || q.From == memory.FromFiles {
		return func(words []memory.Hit) []memory.Hit { return words }
	}
	found := make(chan []memory.Hit, 1)
	go func() { // ends with its deadlines
		var hits []memory.Hit
		err := guard.Do(ctx, guard.Storage, func() (err error) {
			hits, err = s.Dense(ctx, r, q)
			return err
		})
		if err != nil && !errors.Is(err, errPaused) && ctx.Err() == nil {
			zerolog.Ctx(ctx).Warn().Err(err).Msg("Search by meaning failed, words have to do")
		}
		found <- hits
	}()
	return func(words []memory.Hit) []memory.Hit { return fuseHits(words, <-found, s.embedWeight, q.Limit) }
}

// Equal contents, as of an event and a memory drawn from it, are listed once. A hit of both rankings is listed as
// found by words.
func fuseHits(words, meaning []memory.Hit, weight float64, limit int) []memory.Hit {
	if len(meaning) == 0 {
		return words
	}
	hits := make(map[string]memory.Hit, len(words)+len(meaning))
	paths := make(map[string]string, len(words)+len(meaning)) // by content
	order := [2][]string{}
	for side, list := range [][]memory.Hit{words, meaning} {
		for _, h := range list {
			said := text.Normalize(h.Content)
			known, ok := paths[said]
			if h0, same := hits[h.Path]; same {
				known, ok = h0.Path, true
			}
			if ok && side == 1 {
				h0 := hits[known]
				if !slices.Contains(h0.Why, whyMeaning) {
					h0.Why = append(slices.Clone(h0.Why), whyMeaning)
					hits[known] = h0
				}
				if !slices.Contains(order[1], known) {
					order[1] = append(order[1], known)
				}
				continue
			}
			hits[h.Path], paths[said] = h, h.Path
			order[side] = append(order[side], h.Path)
		}
	}
	var fused []memory.Hit
	for _, path := range rank.Fuse(order[0], order[1], weight) {
		fused = append(fused, hits[path])
	}
	return fused[:min(limit, len(fused))]
}
