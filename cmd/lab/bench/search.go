package bench

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"ebb/cmd/lab/rig"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/localpg"
	"ebb/sql/yardstick"
)

const (
	searchEvents   = 960_000
	searchScopes   = 2_000
	searchMemories = 20     // memories of each scope: with the events a million entries
	searchLarge    = 10_000 // events of a scope that counts as large
	searchQueries  = 400
	searchCold     = 60 // right after the server's start; more would no longer be cold
	searchFinds    = 8
	searchLimit    = 20 * time.Millisecond
	searchMost     = 50 * time.Millisecond // in large scopes
)

// searchBuffers is the cache that one would give to a database of three times its size.
const searchBuffers = "1GB"

// Searches right after a restart are measured apart from as many later ones.
func (b *suite) measureSearch(ctx context.Context) ([]rig.Figure, error) {
	world := newSearchWorld()
	o := &localpg.Options{NoSync: true, Buffers: searchBuffers}
	return b.onOwnServer(ctx, "search", world.fillStore, o, func(server *localpg.Server) ([]rig.Figure, error) {
		return world.measure(ctx, server.URL())
	})
}

func (w *searchWorld) measure(ctx context.Context, url string) (figures []rig.Figure, err error) {
	s, err := sql.Open(ctx, sql.Options{URL: url, MaxConns: 2})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	large := slices.IndexFunc(w.talks, func(t *searchTalk) bool { return t.last <= searchLarge })
	if large < 0 {
		large = len(w.talks)
	}
	for _, row := range []struct {
		what    string
		talks   []*searchTalk
		queries int
		limit   time.Duration
	}{
		{"cold", w.talks, searchCold, searchLimit},
		{fmt.Sprintf("%d scopes over 10 k, cold", large), w.talks[:large], searchCold, searchMost},
		{"warm", w.talks, searchQueries, searchLimit},
		{fmt.Sprintf("%d scopes over 10 k, warm", large), w.talks[:large], searchQueries, searchMost},
	} {
		if row.queries > searchCold {
			if _, err := w.askQueries(ctx, s, row.talks, row.queries); err != nil {
				return nil, err
			}
		}
		took, err := w.askQueries(ctx, s, row.talks, row.queries)
		if err != nil {
			return nil, err
		}
		figures = append(figures, p95Figure("memory_search p95, 1 M entries in 2,000 scopes, "+row.what, took, row.limit))
	}
	return figures, nil
}

type searchWorld struct {
	rand  *rand.Rand
	words []string
	often *rand.Zipf
	talks []*searchTalk // the busiest first
}

type searchTalk struct {
	reader memory.Reader
	last   int64
	kept   []string // a sample of its messages
}

func newSearchWorld() *searchWorld {
	r := rand.New(rand.NewPCG(3, 14)) // the same figures each time, no secrets
	w := &searchWorld{rand: r, often: rand.NewZipf(r, 1.1, 8, 29_999)}
	for range 30_000 {
		w.words = append(w.words, w.drawWord())
	}
	var share []float64
	sum := 0.0
	for i := range searchScopes {
		share = append(share, 1/float64(i+3))
		sum += share[i]
	}
	for i, s := range share {
		conversation := sessions.ConversationID(fmt.Sprintf("search-%d", i))
		w.talks = append(w.talks, &searchTalk{last: int64(s / sum * searchEvents), reader: memory.Reader{
			Key: sessions.NewKey(searchRobot, conversation, ""), Robot: searchRobot, Conversation: conversation,
		}})
	}
	return w
}

const searchRobot sessions.RobotCode = "search"

func (w *searchWorld) drawWord() string {
	var b strings.Builder
	if w.rand.IntN(2) == 0 {
		for range 2 {
			b.WriteRune(0x4E00 + w.rand.Int32N(3000))
		}
		return b.String()
	}
	for range 2 + w.rand.IntN(2) {
		b.WriteByte("bcdfghjklmnprstvwz"[w.rand.IntN(18)])
		b.WriteByte("aeiou"[w.rand.IntN(5)])
	}
	return b.String()
}

// Every third message has 1 to 4 KB, like pasted logs and answers of models.
func (w *searchWorld) drawMessage() string {
	if w.rand.IntN(3) == 0 {
		return w.drawText(150 + w.rand.IntN(450))
	}
	return w.drawText(4 + w.rand.IntN(20))
}

func (w *searchWorld) drawText(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = w.words[w.often.Uint64()]
	}
	return strings.Join(words, " ")
}

func loadWorld(ctx context.Context, url string, all []sessions.Session, memories []memory.Memory, events iter.Seq[yardstick.LoadedEvent]) error {
	return withLoader(ctx, url, func(l *yardstick.Loader) error { return loadRows(ctx, l, all, memories, events) })
}

func withLoader(ctx context.Context, url string, fill func(*yardstick.Loader) error) error {
	l, err := yardstick.OpenLoader(ctx, url)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := fill(l); err != nil {
		return err
	}
	return l.LoadEnd(ctx)
}

func loadRows(ctx context.Context, l *yardstick.Loader, all []sessions.Session, memories []memory.Memory, events iter.Seq[yardstick.LoadedEvent]) error {
	if err := l.LoadSessions(ctx, all); err != nil {
		return err
	}
	if err := l.LoadMemories(ctx, memories); err != nil {
		return err
	}
	return l.LoadEvents(ctx, events)
}

func (w *searchWorld) fillStore(ctx context.Context, url string) error {
	if _, err := sql.Migrate(ctx, url); err != nil {
		return err
	}
	var all []sessions.Session
	var memories []memory.Memory
	for _, t := range w.talks {
		r := t.reader
		all = append(all, sessions.Session{
			Key: r.Key, RobotCode: r.Robot, ConversationID: r.Conversation, ConversationType: sessions.Group, LastSeq: t.last,
		})
		for range searchMemories {
			memories = append(memories, memory.Memory{
				ID: int64(len(memories) + 1), Scope: memory.ScopeGroup, ScopeID: memory.GroupID(r.Robot, r.Conversation),
				Kind: memory.KindFact, Content: w.drawText(4 + w.rand.IntN(20)), SourceSession: r.Key, CreatedAt: searchBegan,
			})
		}
	}
	return loadWorld(ctx, url, all, memories, w.drawEvents)
}

var searchBegan = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

// drawEvents interleaves the conversations, as messages arrive: each lies far apart on disk.
func (w *searchWorld) drawEvents(yield func(yardstick.LoadedEvent) bool) {
	left := w.talks
	for place := int64(1); len(left) > 0; place++ {
		for left[len(left)-1].last < place {
			if left = left[:len(left)-1]; len(left) == 0 {
				return
			}
		}
		for _, t := range left {
			e := sessions.Event{Seq: place, Role: sessions.RoleUser, SenderID: "u" + sessions.UserID(fmt.Sprint(place%7)), SenderNick: "Zoe"}
			if place%4 == 0 {
				e.Role, e.SenderID, e.SenderNick = sessions.RoleAssistant, "", ""
			}
			e.Content, e.CreatedAt = w.drawMessage(), searchBegan.Add(time.Duration(place)*10*time.Minute)
			if len(t.kept) < 64 && w.rand.Int64N(t.last/64+1) == 0 {
				t.kept = append(t.kept, e.Content)
			}
			if !yield(yardstick.LoadedEvent{Key: t.reader.Key, Event: e}) {
				return
			}
		}
	}
}

func (w *searchWorld) askQueries(ctx context.Context, s *sql.Store, talks []*searchTalk, n int) ([]time.Duration, error) {
	var took []time.Duration
	for len(took) < n {
		t := talks[w.rand.IntN(len(talks))]
		words := []string{w.words[w.often.Uint64()]}
		if len(t.kept) > 0 {
			said := strings.Fields(t.kept[w.rand.IntN(len(t.kept))])
			some := min(len(said), 3+w.rand.IntN(3))
			first := w.rand.IntN(len(said) - some + 1)
			words = append(words, said[first:first+some]...)
		}
		began := time.Now()
		if _, err := s.Search.Search(ctx, t.reader, memory.Query{Text: strings.Join(words, " "), Limit: searchFinds}); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}
