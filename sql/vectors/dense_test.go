package vectors_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"ebb/bot/openai"
	"ebb/bot/openai/openaitest"
	"ebb/memory"
	"ebb/memory/embed"
	"ebb/sql"
	"ebb/sql/pg"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
	"ebb/sql/vectors"
)

// Sets of facts or messages with a question for each. Those of byMeaning share no word, but one group of synonyms;
// those of byWords share a number or a name that vectors know nothing of.
var (
	byMeaning = []struct{ says, asks, word, other string }{
		{"车库在地下二层东侧", "哪儿能停汽车", "车库", "停汽车"},
		{"Lunch comes from the noodle shop", "who brings our midday food", "lunch", "midday food"},
		{"老板下周去上海", "领导什么时候出差", "老板", "领导"},
		{"The release slipped by a week", "was shipping delayed", "slipped", "delayed"},
		{"小王对花生过敏", "谁不能吃坚果", "花生", "坚果"},
		{"Salaries are paid on the tenth", "when do wages arrive", "salaries", "wages"},
		{"数据库用的是主从架构", "存储怎么做高可用", "主从", "高可用"},
		{"Her daughter starts school in autumn", "how old is the kid", "daughter", "kid"},
		{"会议室要提前一天登记", "怎样预约开会的地方", "登记", "预约"},
		{"The laptop is insured against theft", "does a policy cover my computer", "insured", "policy cover"},
	}
	byWords = []struct{ says, asks string }{
		{"EBB-1042 由前端跟进", "EBB-1042 怎么样了"},
		{"机柜编号是 K7731", "K7731 在什么地方"},
		{"Build 20418 broke the importer", "what about build 20418"},
		{"合同号 HT20260317 已经盖章", "HT20260317 签好没有"},
		{"Host db-17x has two disks", "db-17x"},
		{"工单 88213 转给了客服", "88213 到哪一步"},
		{"Port 9443 is for the console", "9443"},
		{"航班 MU5102 早上起飞", "MU5102 几点"},
		{"SKU A990-12 is out of stock", "A990-12 available?"},
		{"分机 6021 是前台", "6021 是哪里的电话"},
	}
)

func synonyms() [][]string {
	var groups [][]string
	for _, q := range byMeaning {
		groups = append(groups, []string{q.word, q.other})
	}
	return groups
}

// rig is a chat whose texts have vectors of a server, for stores with and without it.
type rig struct {
	*storetest.Chat
	server *openaitest.Server
	dense  *sql.Store
	filler *embed.Filler
}

func embedder(t *testing.T, s *openaitest.Server, model string) *openai.Embedder {
	t.Helper()
	e, err := openai.NewEmbedder(openai.EmbedConfig{BaseURL: s.URL, Model: model, Dimensions: 1024})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func newRig(t *testing.T, url string, o openaitest.Options) *rig {
	t.Helper()
	o.Synonyms = synonyms()
	r := &rig{server: openaitest.New(o)}
	t.Cleanup(r.server.Close)
	plain, _ := storetest.Open(t, url)
	r.Chat = storetest.NewChat(t, plain, "cid", "u1", false)
	e := embedder(t, r.server, "embed-1")
	var err error
	if r.dense, err = sql.Open(t.Context(), sql.Options{URL: url, Embedder: e, EmbedWeight: 0.5, EmbedTimeout: time.Minute, CompareTimeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.dense.Close)
	r.filler = &embed.Filler{Store: r.dense.Vectors, Embedder: e, Batch: 16}
	return r
}

func (r *rig) fill() int {
	r.T.Helper()
	n, err := r.filler.Fill(r.T.Context())
	if err != nil {
		r.T.Fatal(err)
	}
	return n
}

// found is the questions' answers among the first five, for each of the ways to search, as shares.
func (r *rig) found(asks map[string]string) (words, meaning, both float64) {
	r.T.Helper()
	for question, path := range asks {
		q := memory.Query{Text: question, Limit: 5}
		for _, way := range []struct {
			share  *float64
			search func(context.Context, memory.Reader, memory.Query) ([]memory.Hit, error)
		}{{&words, r.Store.Search.Search}, {&meaning, r.dense.Search.Dense}, {&both, r.dense.Search.Search}} {
			hits, err := way.search(r.T.Context(), r.Reader, q)
			if err != nil {
				r.T.Fatal(err)
			}
			if slices.ContainsFunc(hits, func(h memory.Hit) bool { return strings.HasSuffix(h.Path, path) }) {
				*way.share += 1 / float64(len(asks))
			}
		}
	}
	return words, meaning, both
}

// plant says and saves, in turns, what the questions ask for, among much else, and returns where the answers are.
func (r *rig) plant() map[string]string {
	r.T.Helper()
	asks := map[string]string{}
	plant := func(i int, says, asked string) {
		if i%2 == 0 {
			asks[asked] = fmt.Sprintf("#%d", r.Save(storetest.GroupFact(r.Chat, says)).Saved[0])
			return
		}
		r.Say("u1", says)
		asks[asked] = fmt.Sprintf("session_events/%d", 2*r.Said-1)
	}
	for i := range byMeaning {
		plant(i, byMeaning[i].says, byMeaning[i].asks)
		plant(i, byWords[i].says, byWords[i].asks)
		for n := range 6 {
			r.Say("u2", fmt.Sprintf("第 %d 件小事 was dealt with in round %d, 一切正常", n, i))
		}
	}
	return asks
}

// Fused search finds all hits of either way. A server with pgvector compares the vectors, else we do, without a
// difference in the result.
func TestFusedIsNeverBelowTheBetterSide(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	r := newRig(t, url, openaitest.Options{})
	asks := r.plant()
	r.fill()
	server, err := vectors.NewComparer(storetest.OpenDB(t, pg.Options{URL: url})).ServerCompares(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	words, meaning, both := r.found(asks)
	t.Logf("recall@5 by words %.2f, by meaning %.2f, by both %.2f; pgvector: %v", words, meaning, both, server)
	if both < max(words, meaning) || both < 0.95 {
		t.Errorf("recall@5 by words %.2f, by meaning %.2f, by both %.2f", words, meaning, both)
	}
	if words > 0.8 || meaning > 0.8 {
		t.Errorf("the questions ask nothing of a fusion: by words %.2f, by meaning %.2f", words, meaning)
	}
}

// The statement for servers with pgvector finds the same as ours. On a server without it, a type and an operator of the
// same names and meanings stand in for it.
func TestServerComparesAsWeDo(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	r := newRig(t, url, openaitest.Options{})
	asks := r.plant()
	r.fill()
	_, pool := storetest.Open(t, url)
	var available bool
	if err := pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector')").Scan(&available); err != nil {
		t.Fatal(err)
	}
	t.Logf("pgvector itself: %v", available)
	if available { // the store made it: take it away for the side without
		storetest.Execute(t, pool, "DROP EXTENSION IF EXISTS vector; CREATE SCHEMA hidden; CREATE EXTENSION vector SCHEMA hidden")
	}
	without := r.search5(t, asks)
	if has, err := vectors.NewComparer(storetest.OpenDB(t, pg.Options{URL: url})).ServerCompares(t.Context()); err != nil || has {
		t.Fatalf("a server without the type compares vectors: %v", err)
	}
	if available {
		storetest.Execute(t, pool, "ALTER EXTENSION vector SET SCHEMA public")
	} else {
		storetest.Execute(t, pool, `CREATE DOMAIN vector AS real[];
			CREATE FUNCTION distance(a real[], b real[]) RETURNS double precision LANGUAGE sql IMMUTABLE
				RETURN 1 - (SELECT sum(x::float8 * y) FROM unnest(a, b) AS u (x, y));
			CREATE OPERATOR <=> (LEFTARG = real[], RIGHTARG = real[], FUNCTION = distance)`)
	}
	again, err := sql.Open(t.Context(), sql.Options{URL: url, Embedder: embedder(t, r.server, "embed-1"), EmbedWeight: 0.5, EmbedTimeout: time.Minute, CompareTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Close)
	r.dense = again
	with := r.search5(t, asks)
	if has, err := vectors.NewComparer(storetest.OpenDB(t, pg.Options{URL: url})).ServerCompares(t.Context()); err != nil || !has {
		t.Fatalf("a server with the type does not compare vectors: %v", err)
	}
	for question := range asks {
		a, b := without[question], with[question]
		if !slices.EqualFunc(a, b, func(x, y memory.Hit) bool { return x.Path == y.Path && math.Abs(x.Score-y.Score) < 1e-4 }) {
			t.Errorf("%s: without pgvector %v, with it %v", question, a, b)
		}
	}
}

func (r *rig) search5(t *testing.T, asks map[string]string) map[string][]memory.Hit {
	t.Helper()
	out := map[string][]memory.Hit{}
	for question := range asks {
		hits, err := r.dense.Search.Dense(t.Context(), r.Reader, memory.Query{Text: question, Limit: 5})
		if err != nil {
			t.Fatal(err)
		}
		out[question] = hits
	}
	return out
}

// Behind a pooler that keeps no statements values come as text, and vectors are compared all the same.
func TestVectorsAsText(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	r := newRig(t, url, openaitest.Options{})
	asks := r.plant()
	r.fill()
	want := r.search5(t, asks)
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	simple, err := sql.Open(t.Context(), sql.Options{
		URL: url + separator + "default_query_exec_mode=simple_protocol", Embedder: embedder(t, r.server, "embed-1"), EmbedWeight: 0.5, EmbedTimeout: time.Minute, CompareTimeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(simple.Close)
	r.dense = simple
	for question, got := range r.search5(t, asks) {
		if !slices.EqualFunc(want[question], got, func(x, y memory.Hit) bool { return x.Path == y.Path && math.Abs(x.Score-y.Score) < 1e-4 }) {
			t.Errorf("%s: as text %v, in binary form %v", question, got, want[question])
		}
	}
}

// An endpoint that is down or hangs costs a search its short wait once, and no find.
func TestSearchWithoutTheEndpoint(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	r := newRig(t, url, openaitest.Options{EmbedFault: func(openaitest.EmbedRequest) (openaitest.Reply, bool) {
		return openaitest.Hang(), true
	}})
	asks := r.plant()
	soon, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	if hits, err := r.dense.Search.Search(soon, r.Reader, memory.Query{Text: "EBB-1042", Limit: 5}); err != nil || len(hits) == 0 {
		t.Errorf("a caller with less time than the endpoint is given has %v (%v)", hits, err)
	}
	var err error
	if r.dense, err = sql.Open(t.Context(), sql.Options{URL: url, Embedder: embedder(t, r.server, "embed-1"), EmbedWeight: 0.5}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.dense.Close) // not patient
	before := len(r.server.Embeddings())
	for question := range asks {
		q := memory.Query{Text: question, Limit: 5}
		words, err := r.Store.Search.Search(t.Context(), r.Reader, q)
		if err != nil {
			t.Fatal(err)
		}
		both, err := r.dense.Search.Search(t.Context(), r.Reader, q)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(words, both, func(a, b memory.Hit) bool { return a.Path == b.Path }) {
			t.Errorf("%s: by words %v, with an endpoint that hangs %v", question, words, both)
		}
	}
	if n := len(r.server.Embeddings()) - before; n != 1 {
		t.Errorf("an endpoint that hangs was asked %d times by %d searches in a row", n, len(asks))
	}
}

// A question without a similar text finds nothing: some text is always the nearest.
func TestNothingIsNear(t *testing.T) {
	t.Parallel()
	r := newRig(t, sqltest.URL(t), openaitest.Options{})
	r.plant()
	r.fill()
	for _, question := range []string{"zebra crossing rules", "量子色动力学"} {
		hits, err := r.dense.Search.Search(t.Context(), r.Reader, memory.Query{Text: question, Limit: 5})
		if err != nil || len(hits) > 0 {
			t.Errorf("%s: found %v (%v)", question, hits, err)
		}
	}
}

// A private message, or one of another group, is near for its authorised readers only.
func TestMeaningStaysInItsScope(t *testing.T) {
	t.Parallel()
	r := newRig(t, sqltest.URL(t), openaitest.Options{})
	elsewhere, private := storetest.NewChat(t, r.Store, "cid2", "u1", false), storetest.NewChat(t, r.Store, "cid3", "u1", true)
	r.Save(storetest.GroupFact(r.Chat, "the lunch is at noon"))
	elsewhere.Save(storetest.GroupFact(elsewhere, "their lunch is elsewhere"))
	elsewhere.Say("u1", "lunch again elsewhere")
	private.Save(storetest.FactAbout("u1", "u1 wants no lunch, secretly"))
	private.Say("u1", "lunch in secret")
	r.fill()
	for _, tt := range []struct {
		chat *storetest.Chat
		want []string
	}{
		{r.Chat, []string{"the lunch is at noon"}},
		{elsewhere, []string{"their lunch is elsewhere", "lunch again elsewhere"}},
		{private, []string{"u1 wants no lunch, secretly", "lunch in secret"}},
	} {
		for _, search := range []func(context.Context, memory.Reader, memory.Query) ([]memory.Hit, error){r.dense.Search.Dense, r.dense.Search.Search} {
			hits, err := search(t.Context(), tt.chat.Reader, memory.Query{Text: "midday food", Limit: 9})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range hits {
				got = append(got, h.Content)
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			if !slices.Equal(got, tt.want) {
				t.Errorf("in %s found %q, want %q", tt.chat.Reader.Key, got, tt.want)
			}
		}
	}
}

// A search that is given up gives up its vectors too.
func TestSearchIsGivenUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, sqltest.URL(t), openaitest.Options{})
	ctx, stop := context.WithTimeout(t.Context(), time.Nanosecond)
	defer stop()
	if _, err := r.dense.Search.Search(ctx, r.Reader, memory.Query{Text: "midday food", Limit: 5}); err == nil {
		t.Error("a search whose time is over finds something")
	}
}
