package vectors_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ebb/bot/openai/openaitest"
	"ebb/memory"
	"ebb/memory/embed"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
	"ebb/sql/vectors"
)

// sent are the texts that a server was asked to embed, in order.
func sent(s *openaitest.Server) []string {
	var all []string
	for _, r := range s.Embeddings() {
		all = append(all, r.Texts...)
	}
	return all
}

// Each text is sent once, wherever it stands, also after a restart; new ones follow.
func TestEmbeddingsAreMadeOnce(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	r := newRig(t, url, openaitest.Options{})
	_, pool := storetest.Open(t, url)
	other := storetest.NewChat(t, r.Store, "cid2", "u2", false)
	r.Say("u1", "the budget is small")
	other.Say("u2", "the budget is small")
	r.Save(storetest.GroupFact(r.Chat, "the budget is small"))
	other.Save(storetest.GroupFact(other, "预算很小"))
	r.Result("a tool's result is not searched by meaning")
	long := strings.Repeat("很长的话，", 5000)
	r.Say("u1", long)
	r.filler.Batch = 2
	r.fill()
	got := sent(r.server)
	want := []string{"hello", "ok", "the budget is small", "预算很小", string([]rune(long)[:2000])}
	if slices.Sort(got); !slices.Equal(got, sorted(want)) {
		t.Fatalf("sent %.100q\nwant %.100q", got, want)
	}
	// hello, ok and the budget in both sessions, the long one in one; the facts of two groups
	if n := storetest.Number(t, pool, "SELECT count(*) FROM embeddings WHERE cardinality(vec) = 1024"); n != 9 {
		t.Errorf("%d vectors are kept, want 9", n)
	}

	again, err := sql.Open(t.Context(), sql.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Close)
	f := &embed.Filler{Store: again.Vectors, Embedder: embedder(t, r.server, "embed-1")}
	if n, err := f.Fill(t.Context()); err != nil || n != 0 || len(sent(r.server)) != len(want) {
		t.Errorf("after a restart %d texts are new (%v)", n, err)
	}
	r.Say("u1", "something new")
	r.Save(storetest.GroupFact(r.Chat, "a new fact"))
	if n, err := f.Fill(t.Context()); err != nil || n != 2 || len(sent(r.server)) != len(want)+2 {
		t.Errorf("of two new texts %d were filled (%v)", n, err)
	}
}

func sorted(in []string) []string {
	slices.Sort(in)
	return in
}

// Work that stopped in the middle goes on where it was, for another process too.
func TestEmbeddingGoesOn(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	r := newRig(t, url, openaitest.Options{EmbedFault: func(q openaitest.EmbedRequest) (openaitest.Reply, bool) {
		return openaitest.Error(401, "", ""), q.N == 3
	}})
	for i := range 30 {
		r.Say("u1", fmt.Sprint("message number ", i))
	}
	r.filler.Batch = 10
	if n, err := r.filler.Fill(t.Context()); err == nil || n != 20 {
		t.Fatalf("%d texts were filled before the fault: %v", n, err)
	}
	f := &embed.Filler{Store: r.dense.Vectors, Embedder: embedder(t, r.server, "embed-1"), Batch: 10}
	if n, err := f.Fill(t.Context()); err != nil || n != 12 {
		t.Errorf("%d texts were filled after it (%v), want the other 12", n, err)
	}
}

// After a change of model everything gets a new vector, and until it has, searches by the old model find.
func TestEmbeddingModelChanges(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	var failing atomic.Bool
	failing.Store(true)
	r := newRig(t, url, openaitest.Options{EmbedFault: func(q openaitest.EmbedRequest) (openaitest.Reply, bool) {
		return openaitest.Error(401, "", ""), failing.Load() && q.Model == "embed-2" && slices.Contains(q.Texts, "last")
	}})
	_, pool := storetest.Open(t, url)
	r.Say("u1", "first")
	r.Say("u1", "last")
	r.fill()
	models := func() string {
		t.Helper()
		var s string
		if err := pool.QueryRow(t.Context(), `SELECT string_agg(m || ' ' || n, ', ' ORDER BY m) FROM (
			SELECT model AS m, count(*) AS n FROM embeddings GROUP BY model) x`).Scan(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	next := &embed.Filler{Store: r.dense.Vectors, Embedder: embedder(t, r.server, "embed-2"), Batch: 1}
	if _, err := next.Fill(t.Context()); err == nil {
		t.Fatal("the fault was no error")
	}
	if got := models(); got != "embed-1/1024 4, embed-2/1024 3" {
		t.Errorf("halfway there are %s", got)
	}
	failing.Store(false)
	if n, err := next.Fill(t.Context()); err != nil || n != 1 {
		t.Fatalf("%d were left (%v)", n, err)
	}
	if got := models(); got != "embed-2/1024 4" {
		t.Errorf("at the end there are %s", got)
	}
	if n := storetest.Number(t, pool, "SELECT count(*) FROM embedding_cursors WHERE model <> 'embed-2/1024'"); n != 0 {
		t.Errorf("%d cursors of the former model are left", n)
	}
}

// A text that the endpoint refuses is remembered as that, and holds up no other.
func TestRefusedTextIsRemembered(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	r := newRig(t, url, openaitest.Options{EmbedFault: func(q openaitest.EmbedRequest) (openaitest.Reply, bool) {
		bad := slices.ContainsFunc(q.Texts, func(s string) bool { return strings.Contains(s, "forbidden") })
		return openaitest.Error(400, "", `{"error":{"code":"data_inspection_failed"}}`), bad
	}})
	_, pool := storetest.Open(t, url)
	r.Say("u1", "a forbidden word")
	r.Save(storetest.GroupFact(r.Chat, "a forbidden fact"), storetest.GroupFact(r.Chat, "the lunch is at noon"))
	r.fill()
	if n := storetest.Number(t, pool, "SELECT count(*) FROM embeddings WHERE cardinality(vec) = 0"); n != 2 {
		t.Errorf("%d texts are remembered as refused, want 2", n)
	}
	asked := len(r.server.Embeddings())
	if r.fill(); len(r.server.Embeddings()) != asked {
		t.Error("they were sent again")
	}
	hits, err := r.dense.Search.Dense(t.Context(), r.Reader, memory.Query{Text: "midday food", Limit: 5})
	if err != nil || len(hits) != 1 || hits[0].Content != "the lunch is at noon" {
		t.Errorf("beside the refused ones a search finds %v (%v)", hits, err)
	}
}

// A text that was erased while its vector was being made gets none.
func TestErasedTextGetsNoVector(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	r := newRig(t, url, openaitest.Options{})
	_, pool := storetest.Open(t, url)
	r.Say("u1", "a secret message")
	id := r.Save(storetest.GroupFact(r.Chat, "a secret fact")).Saved[0]
	model := "embed-1/1024"
	texts, err := r.dense.Vectors.Unembedded(t.Context(), model, 100)
	if err != nil || len(texts) != 4 {
		t.Fatalf("%d texts lack a vector (%v), want 4", len(texts), err)
	}
	if _, err := r.Store.Erasure.Erase(t.Context(), r.Reader.Key, []int64{3}); err != nil {
		t.Fatal(err)
	}
	storetest.Execute(t, pool, "DELETE FROM memories WHERE id = $1", id)
	made := make([][]float32, len(texts))
	for i := range texts {
		made[i] = []float32{1, 2, 3}
	}
	if err := r.dense.Vectors.KeepVectors(t.Context(), model, texts, made); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"a secret message", "a secret fact"} {
		hash := vectors.Hash(secret)
		if !slices.ContainsFunc(texts, func(u memory.Unembedded) bool { return bytes.Equal(u.Hash, hash) }) {
			t.Errorf("the hash of %q is another in the database", secret)
		}
		if n := storetest.Number(t, pool, "SELECT count(*) FROM embeddings WHERE content_hash = $1", hash); n != 0 {
			t.Errorf("%q has a vector", secret)
		}
	}
	if n := storetest.Number(t, pool, "SELECT count(*) FROM embeddings"); n != 2 {
		t.Errorf("%d vectors were kept, want those of the texts that stand", n)
	}
}

// A session that is deleted takes its made along, and one of the same key starts empty.
func TestDeletedSessionHasNoVectors(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	r := newRig(t, url, openaitest.Options{})
	_, pool := storetest.Open(t, url)
	r.Say("u1", "first life")
	r.fill()
	if _, err := r.Store.Erasure.Delete(t.Context(), r.Reader.Key); err != nil {
		t.Fatal(err)
	}
	if n := storetest.Number(t, pool, "SELECT (SELECT count(*) FROM embeddings) + (SELECT count(*) FROM embedding_cursors)"); n != 0 {
		t.Fatalf("%d rows are left", n)
	}
	r.Say("u1", "lunch in a second life")
	r.fill()
	hits, err := r.dense.Search.Dense(t.Context(), r.Reader, memory.Query{Text: "midday food", Limit: 5})
	if err != nil || len(hits) != 1 {
		t.Errorf("found %v (%v)", hits, err)
	}
}

// A deleted text leaves no vector behind: neither a quote of an erased message nor an expired one. Texts that another
// message still has keep theirs.
func TestVectorsGoWithTheirTexts(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	r := newRig(t, url, openaitest.Options{})
	_, pool := storetest.Open(t, url)
	asked := r.Speak("z1", storetest.ZhangID, storetest.ZhangNick, "my number is "+storetest.Secret, nil) // 3, 4
	r.Turn(storetest.ZhangID, storetest.ZhangNick, "noted", asked)
	quoting := r.Speak("l2", storetest.LiID, "李娜", "thanks", &sessions.Quote{ID: "z1", SenderID: storetest.ZhangID, Nick: storetest.ZhangNick, Text: "my number is " + storetest.Secret})
	r.Turn(storetest.LiID, "李娜", "welcome", quoting) // 5, 6
	old, kept := storetest.GroupFact(r.Chat, "the fair is over"), storetest.GroupFact(r.Chat, "the fair is in May")
	old.ExpiresAt, kept.ExpiresAt = time.Now().Add(time.Hour), time.Now().Add(time.Hour)
	r.Save(old, kept)
	other := storetest.NewChat(t, r.Store, "cid2", "u2", false)
	other.Save(storetest.GroupFact(other, "the fair is over"))
	r.fill()
	vectors := func(content string) int {
		t.Helper()
		return storetest.Number(t, pool, "SELECT count(*) FROM embeddings WHERE content_hash = $1", vectors.Hash(content))
	}
	quote := sessions.QuoteLead(storetest.ZhangNick, "my number is "+storetest.Secret) + "thanks"
	if vectors(quote) != 1 || vectors("the fair is over") != 2 || vectors("the fair is in May") != 1 {
		t.Fatalf("to begin with there are %d, %d and %d vectors", vectors(quote), vectors("the fair is over"), vectors("the fair is in May"))
	}
	if _, err := r.Store.Erasure.Erase(t.Context(), r.Reader.Key, []int64{3}); err != nil {
		t.Fatal(err)
	}
	if n := vectors(quote); n != 0 {
		t.Error("the vector of what quoted an erased message is left")
	}
	storetest.Execute(t, pool, "UPDATE memories SET expires_at = now() - interval '31 days' WHERE expires_at IS NOT NULL")
	storetest.Execute(t, pool, "UPDATE memories SET expires_at = NULL WHERE content LIKE '%May'")
	if n, err := r.Store.FactUpkeep.DeleteExpired(t.Context()); err != nil || n != 1 {
		t.Fatalf("%d expired (%v)", n, err)
	}
	if vectors("the fair is over") != 1 || vectors("the fair is in May") != 1 {
		t.Errorf("of what expired %d vectors are left, want the other group's; of what did not %d", vectors("the fair is over"), vectors("the fair is in May"))
	}
}
