package search

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	lru "github.com/hashicorp/golang-lru/v2"

	"ebb/memory"
	"ebb/memory/rank"
	"ebb/sql/dbsqlc"
	"ebb/sql/facts"
	"ebb/sql/identity"
	"ebb/sql/index"
	"ebb/sql/pg"
	"ebb/sql/vectors"
)

// Options configure search by meaning, and the time zone of days in queries.
type Options struct {
	Location    *time.Location
	Embedder    memory.Embedder // nil: by words alone
	EmbedWeight float64
	// EmbedTimeout and CompareTimeout bound the two steps of a search by meaning; see sql.Options.
	EmbedTimeout, CompareTimeout time.Duration
}

// New returns the searches of a database.
func New(
	db *pg.DB, identities *identity.Store, visible *facts.Reader, comparer *vectors.Comparer, logs *index.Logs, o Options,
) *Store {
	s := &Store{
		db: db, identities: identities, visible: visible, comparer: comparer, logs: logs, loc: o.Location, embedWeight: o.EmbedWeight,
	}
	s.recent, _ = lru.New[string, []int64](maxKept) // it fails only without a size
	s.meaning.embedder = o.Embedder
	s.meaning.known, _ = lru.New[string, []float32](keptQueries) // it fails only without a size
	s.meaning.wait, s.meaning.compare = cmp.Or(o.EmbedTimeout, embedWait), cmp.Or(o.CompareTimeout, compareWait)
	return s
}

// Search implements memory.Searcher. Candidates come from the index on terms, and memory/rank scores them. Configured
// embeddings add candidates by meaning.
func (s *Store) Search(ctx context.Context, r memory.Reader, q memory.Query) ([]memory.Hit, error) {
	if q.Limit <= 0 {
		return nil, nil
	}
	fuse := s.startDense(ctx, r, q)
	hits, err := s.byWords(ctx, r, q)
	if err != nil {
		return nil, fmt.Errorf("searching memory: %w", err)
	}
	return fuse(hits), nil
}

// byWords reads how far the log reaches, its recent speakers and the clock first: words of the question such as a name or "yesterday" are
// understood by them.
func (s *Store) byWords(ctx context.Context, r memory.Reader, q memory.Query) ([]memory.Hit, error) {
	scope, err := s.db.Q.SearchScope(ctx, s.db.Pool, &dbsqlc.SearchScopeParams{SessionKey: r.Key, Version: index.TermsVersion})
	if err != nil {
		return nil, err
	}
	now := q.Now
	if now.IsZero() {
		now = scope.At
	}
	x := &searching{store: s, reader: r, query: rank.ParseQuery(q.Text, now.In(s.loc)), from: q.From, limit: q.Limit, chars: min(maxBody, cmp.Or(q.Chars, maxBody)), common: make(map[int64]int)}
	for i, id := range scope.Ids {
		x.query.AddPeople(rank.Person{ID: id, Nick: scope.Nicks[i]})
	}
	x.scope, x.last = &scope, scope.LastSeq
	if x.from != memory.FromEvents && x.from != memory.FromFiles {
		if err := x.memories(ctx); err != nil {
			return nil, err
		}
	}
	if x.from == memory.FromAll || x.from == memory.FromFiles {
		if err := x.filePages(ctx); err != nil {
			return nil, err
		}
	}
	if x.from != memory.FromMemories && x.from != memory.FromFiles && scope.LastSeq > 0 {
		if err := x.events(ctx); err != nil {
			return nil, err
		}
		x.total += int(scope.LastSeq)
	}
	finds, err := x.rank(ctx)
	if err != nil || len(finds) == 0 {
		return nil, err
	}
	return x.hits(ctx, finds)
}

// rank reads the neighbours of the best finds and ranks once more with them. It returns more than the limit, since finds with the
// same content fall out later.
func (x *searching) rank(ctx context.Context) ([]rank.Match, error) {
	if err := x.markOutdated(ctx); err != nil {
		return nil, err
	}
	pool := x.query.Pool(x.total)
	for key, n := range x.common {
		pool.Common(key, n)
	}
	for i := range x.found {
		pool.Add(x.found[i].Doc)
	}
	if x.from != memory.FromMemories && x.from != memory.FromFiles {
		if seqs := pool.Adjacent(besideBest); len(seqs) > 0 {
			before := len(x.found)
			if err := x.read(ctx, seqs); err != nil {
				return nil, err
			}
			for i := range x.found[before:] {
				pool.Add(x.found[before+i].Doc)
			}
		}
	}
	return pool.Rank(2*x.limit + narrowRange), nil // some may have the same content
}

// events searches by time and person for a query without words. It reads the log behind the index first, and then the index,
// which may have taken the same events in meanwhile.
func (x *searching) events(ctx context.Context) error {
	before := len(x.found)
	if err := x.addUnindexed(ctx); err != nil {
		return err
	}
	if err := x.terms(ctx, x.query.EventKeys(0)); err != nil {
		return err
	}
	if x.query.HasNoTerms() {
		if err := x.addByTimeOrSpeaker(ctx); err != nil {
			return err
		}
	}
	for _, c := range x.found[before:] { // authors from long ago
		x.query.AddPeople(rank.Person{ID: string(c.sender), Nick: c.nick})
	}
	return nil
}

// addUnindexed reads what turns stored since the last indexing, within bounds: an event must be found in the turn after it. A backlog
// over the bounds is noted for the indexer.
func (x *searching) addUnindexed(ctx context.Context) error {
	if x.scope.IndexedSeq >= x.last && len(x.scope.Again) == 0 {
		return nil
	}
	rows, err := x.store.db.Q.EventsUnindexed(ctx, x.store.db.Pool, &dbsqlc.EventsUnindexedParams{
		SessionKey: x.reader.Key, AfterSeq: x.scope.IndexedSeq, Again: x.scope.Again,
		MaxChars: maxNewChars, MaxRows: maxUnindexed, MaxBytes: maxNewBytes,
	})
	if err != nil {
		return err
	}
	x.store.logs.Note(x.reader.Key, x.last)
	x.newest = make(map[int64]unindexed, len(rows))
	bytes, whole := 0, len(rows) < maxUnindexed
	for _, r := range rows {
		bytes += len(r.Content)
		whole = whole && utf8.RuneCountInString(r.Content) < maxNewChars
		if keys := x.store.keysOf(r.Content); len(keys) > 0 {
			x.newest[r.Seq] = unindexed{keys: keys, EventsBesideRow: dbsqlc.EventsBesideRow{
				Seq: r.Seq, Role: r.Role, SenderID: r.SenderID, SenderNick: r.SenderNick, CreatedAt: r.CreatedAt,
			}}
		}
	}
	if !whole || bytes >= maxNewBytes {
		x.store.logs.NoteCut(x.reader.Key)
	}
	return nil
}

// Several searches read the same newest texts, whose terms take as long as the rest of a search.
func (s *Store) keysOf(content string) []int64 {
	if len(content) > maxKeptBytes {
		return index.EventTerms(content)
	}
	keys, ok := s.recent.Get(content)
	if !ok {
		keys = index.EventTerms(content)
		s.recent.Add(content, keys)
	}
	return keys
}

// addByTimeOrSpeaker adds events by time or speaker alone, for questions such as "what did Li Na write on Monday", which share no word with their
// answer.
func (x *searching) addByTimeOrSpeaker(ctx context.Context) error {
	from, to, dated := x.query.Span()
	if !dated {
		if len(x.query.People()) == 0 {
			return nil
		}
		from, to = time.Unix(0, 0), time.Now().AddDate(1, 0, 0)
	}
	rows, err := x.store.db.Q.EventsTold(ctx, x.store.db.Pool, &dbsqlc.EventsToldParams{
		SessionKey: x.reader.Key, FromTime: from, ToTime: to, SenderIds: append([]string{}, x.query.People()...), MaxRows: maxSaid,
	})
	if err != nil {
		return err
	}
	known := x.knownEvents()
	for _, row := range rows {
		if _, newest := x.newest[row.Seq]; !known[row.Seq] && !newest {
			x.add(dbsqlc.EventsBesideRow(row), index.Terms(row.Terms))
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(x.newest)) {
		if e := x.newest[seq]; !known[seq] && !e.CreatedAt.Before(from) && e.CreatedAt.Before(to) &&
			(len(x.query.People()) == 0 || slices.Contains(x.query.People(), string(e.SenderID))) {
			x.add(e.EventsBesideRow, e.keys)
		}
	}
	return nil
}

// Events whose content was corrected later rank after current content.
func (x *searching) markOutdated(ctx context.Context) error {
	first, last := int64(0), int64(0)
	for _, c := range x.found {
		if c.Seq > 0 {
			first, last = min(cmp.Or(first, c.Seq), c.Seq), max(last, c.Seq)
		}
	}
	if last == 0 {
		return nil
	}
	seqs, err := x.store.db.Q.EventsOutdated(ctx, x.store.db.Pool, &dbsqlc.EventsOutdatedParams{
		SessionKey: x.reader.Key, FirstSeq: first, LastSeq: last, Most: narrowRange,
	})
	if err != nil || len(seqs) == 0 {
		return err
	}
	for i := range x.found {
		x.found[i].Outdated = slices.Contains(seqs, x.found[i].Seq)
	}
	return nil
}
