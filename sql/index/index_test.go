package index_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"ebb/memory"
	"ebb/memory/rank"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/index"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

var rareWords = []string{"quokka", "zeppelin", "harbour", "obelisk", "marzipan", "tundra", "saffron", "火烈鸟"}

// indexing is a private chat in which anything may happen to the log and to its index.
type indexing struct {
	*storetest.Chat
	rt    *rapid.T
	pool  *pgxpool.Pool
	other *sql.Store // another process
	who   sessions.UserID

	forgets int
}

func (x *indexing) text() string {
	words := rapid.SliceOfN(rapid.SampledFrom(rareWords), 0, 3).Draw(x.rt, "words")
	return "we met near " + strings.Join(words, " ")
}

func (x *indexing) id() string {
	x.Said++
	return fmt.Sprint(x.Reader.Key, "/", x.Said)
}

func (x *indexing) places() []int64 { return storetest.PlacesOf(x.T, x.pool, x.Reader.Key) }

func (x *indexing) converse(*rapid.T) {
	x.Turn(x.who, "Zhang", x.text(), x.Speak(x.id(), x.who, "Zhang", x.text(), nil))
}

func (x *indexing) command(*rapid.T) {
	a := x.Speak(x.id(), x.who, "Zhang", "/remember "+x.text(), nil)
	storetest.Must[sessions.Committed](x.T)(x.Store.Turns.Commit(x.T.Context(), a.Lease, sessions.TurnResult{
		Taken: []int64{a.EventID}, TakenTokens: []int{2}, Command: true, Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "noted: " + x.text()}},
	}))
}

func (x *indexing) quote(*rapid.T) {
	quoted := x.text()
	x.Turn(x.who, "Zhang", "ok", x.Speak(x.id(), x.who, "Zhang", quoted, nil))
	x.Turn(x.who, "Zhang", "ok", x.Speak(x.id(), x.who, "Zhang", x.text(), &sessions.Quote{Text: quoted, SenderID: x.who, Nick: "Zhang"}))
}

func (x *indexing) index(*rapid.T) {
	s := rapid.SampledFrom([]*sql.Store{x.Store, x.other}).Draw(x.rt, "process")
	if _, err := s.Index.Logs.IndexSession(x.T.Context(), x.Reader.Key, rapid.IntRange(1, 20).Draw(x.rt, "limit")); err != nil {
		x.rt.Fatal(err)
	}
}

// kill ends an indexing at any of its statements.
func (x *indexing) kill(*rapid.T) {
	ctx, stop := context.WithTimeout(x.T.Context(), time.Duration(rapid.IntRange(0, 4000).Draw(x.rt, "micros"))*time.Microsecond)
	defer stop()
	_, _ = x.other.Index.Logs.IndexSession(ctx, x.Reader.Key, 50)
}

// age leaves the index of an older release, whose rules find none of the words.
func (x *indexing) age(*rapid.T) {
	storetest.Execute(x.T, x.pool, "UPDATE event_index SET version = 1 WHERE session_key = $1", x.Reader.Key)
	storetest.Execute(x.T, x.pool, "DELETE FROM event_postings WHERE session_key = $1", x.Reader.Key)
}

func (x *indexing) erase(*rapid.T) {
	if all := x.places(); len(all) > 0 {
		seqs := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, min(3, len(all)), rapid.ID[int64]).Draw(x.rt, "seqs")
		storetest.Must[sessions.Erased](x.T)(x.Store.Erasure.Erase(x.T.Context(), x.Reader.Key, seqs))
		x.claim()
	}
}

func (x *indexing) compact(*rapid.T) {
	v := storetest.Must[sessions.View](x.T)(x.Store.Turns.Begin(x.T.Context(), x.Lease, 5))
	if from, last := v.Session.CompactedSeq, v.Session.LastSeq; last > from {
		c := storetest.SummaryOf(from, last, "so far")
		storetest.Must[sessions.Compacted](x.T)(x.Store.Compactions.Compact(x.T.Context(), x.Lease, c))
	}
}

func (x *indexing) expire(*rapid.T) {
	all := x.places()
	if len(all) == 0 {
		return
	}
	through := rapid.SampledFrom(all).Draw(x.rt, "through")
	storetest.Execute(x.T, x.pool, "UPDATE dingtalk_sessions SET flushed_seq = greatest(flushed_seq, $2) WHERE session_key = $1", x.Reader.Key, through)
	storetest.Execute(x.T, x.pool, "UPDATE dingtalk_session_events SET created_at = now() - interval '100 hours' WHERE session_key = $1 AND seq <= $2", x.Reader.Key, through)
	storetest.Must[int](x.T)(x.Store.Retention.ExpireEvents(x.T.Context(), x.Reader.Key, storetest.Period))
}

// forget deletes the log but for the message that asks and those after it, which get new places.
func (x *indexing) forget(*rapid.T) {
	if x.forgets++; x.forgets > 2 { // a person may do so a few times a day
		return
	}
	asked := x.Speak(x.id(), x.who, "Zhang", "/forget me yes", nil)
	x.Turn(x.who, "Zhang", x.text(), x.Speak(x.id(), x.who, "Zhang", x.text(), nil))
	done := storetest.Must[memory.Forgotten](x.T)(x.Store.Erasure.ForgetPerson(x.T.Context(), memory.Forget{
		Robot: storetest.Robot, Person: x.who, Self: true, From: memory.Asking{Lease: x.Lease, Event: asked.EventID},
	}))
	x.Lease = done.Lease
	storetest.Must[sessions.Committed](x.T)(x.Store.Turns.Commit(x.T.Context(), x.Lease, sessions.TurnResult{
		Taken: []int64{asked.EventID}, TakenTokens: []int{2}, Command: true, Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "done"}},
	}))
}

// claim gets the lease again, whose term an erasure ended.
func (x *indexing) claim() { x.converse(x.rt) }

// holding are the places of the messages that a reader of the log finds by each of the rare words.
func (x *indexing) holding() map[string][]int64 {
	x.T.Helper()
	said := map[string][]int64{}
	rows := storetest.Must[pgx.Rows](x.T)(x.pool.Query(x.T.Context(), `SELECT word, seq FROM dingtalk_session_events, unnest($2::text[]) word WHERE session_key = $1 AND seq IS NOT NULL
		AND role IN ('user', 'assistant') AND left(content, 1) <> '/' AND content NOT LIKE 'noted: %' AND content LIKE '%' || word || '%' ORDER BY seq`, x.Reader.Key, rareWords))
	var word string
	var seq int64
	if _, err := pgx.ForEachRow(rows, []any{&word, &seq}, func() error { said[word] = append(said[word], seq); return nil }); err != nil {
		x.T.Fatal(err)
	}
	return said
}

// finds searches for words at once, and compares the places of each with those where it was said.
func (x *indexing) finds(rt *rapid.T, said map[string][]int64, words ...string) {
	hits, err := x.Store.Search.Search(x.T.Context(), x.Reader, memory.Query{Text: strings.Join(words, " "), Limit: 400, From: memory.FromEvents})
	if err != nil {
		rt.Fatal(err)
	}
	for _, word := range words {
		var got []int64
		for _, h := range hits {
			if strings.Contains(h.Content, word) {
				got = append(got, h.Seq)
			}
		}
		if slices.Sort(got); !slices.Equal(got, said[word]) {
			rt.Fatalf("%s is found in %v by a search for %q, and said in %v", word, got, words, said[word])
		}
	}
}

// check searches for all words together, and for one of them: a search is many statements.
func (x *indexing) check(rt *rapid.T) {
	ctx, said := x.T.Context(), x.holding()
	x.finds(rt, said, rareWords...)
	x.finds(rt, said, rapid.SampledFrom(rareWords).Draw(rt, "word"))
	var keys []int64
	for _, word := range rareWords {
		keys = append(keys, rank.Keys(0, word)[0])
	}
	f, err := x.Store.Index.Logs.PlacesOf(ctx, x.Reader.Key, keys)
	if err != nil {
		rt.Fatal(err)
	}
	for i, word := range rareWords {
		for _, place := range f.Places[i] {
			if !slices.Contains(said[word], place) {
				rt.Fatalf("the index has %s at place %d, and the log at %v", word, place, said[word])
			}
		}
	}
	rows, err := x.pool.Query(ctx, `SELECT t.seq, t.terms, coalesce(e.content, '') FROM event_terms t
		LEFT JOIN dingtalk_session_events e ON e.session_key = t.session_key AND e.seq = t.seq AND e.searched WHERE t.session_key = $1`, x.Reader.Key)
	if err != nil {
		rt.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		var terms []byte
		var content string
		if err := rows.Scan(&seq, &terms, &content); err != nil {
			rt.Fatal(err)
		}
		if content == "" || !slices.Equal(index.Terms(terms), index.EventTerms(content)) {
			rt.Fatalf("the terms at place %d are not those of %q", seq, content)
		}
	}
}

// P94: at any moment a search finds each message of the log by its words. The index has no word of a message that was erased,
// deleted or moved. Either process may have indexed any part of the log, and may have been killed in it. So may an older release, by
// other rules.
func TestSearchFindsWhatTheLogHas(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	s, pool := storetest.Open(t, url)
	other, err := sql.Open(t.Context(), sql.Options{URL: url, MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	runs, failed := 0, true
	rapid.Check(t, func(rt *rapid.T) {
		if runs++; runs > 50 && !failed { // each run is hundreds of statements
			return
		}
		failed = true
		x := &indexing{rt: rt, pool: pool, other: other, who: sessions.UserID(fmt.Sprint("staff", runs))}
		x.Chat = storetest.NewChat(t, s, sessions.ConversationID(fmt.Sprint("dm", runs)), x.who, true)
		storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = '1' WHERE session_key = $1", x.Reader.Key)
		rt.Repeat(map[string]func(*rapid.T){
			"": x.check, "converse": x.converse, "talk": x.converse, "command": x.command, "quote": x.quote, "index": x.index, "index on": x.index,
			"kill": x.kill, "age": x.age, "erase": x.erase, "compact": x.compact, "expire": x.expire, "forget": x.forget,
		})
		failed = false
	})
}
