package files_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// shelf is a conversation that keeps files.
type shelf struct {
	*testing.T
	*storetest.Chat
	store *sql.Store
}

// keep stores a document as the attachment of a message, and keeps it.
func (s *shelf) keep(f sessions.KeptFile, pages ...string) sessions.Keeping {
	s.Helper()
	kept, err := s.tryKeep(f, pages...)
	if err != nil {
		s.Fatal(err)
	}
	return kept
}

func (s *shelf) tryKeep(f sessions.KeptFile, pages ...string) (sessions.Keeping, error) {
	s.Helper()
	f.Kind, f.Pages = "docx", max(f.Pages, len(pages))
	s.attach(f, pages...)
	return s.store.Files.KeepFile(s.Context(), s.Lease, f, sessions.FileRights{IDs: []sessions.UserID{f.KeptBy}})
}

// attach stores a document as the attachment of a message.
func (s *shelf) attach(f sessions.KeptFile, pages ...string) {
	s.Helper()
	list := make([]sessions.MediaPage, len(pages))
	for i, text := range pages {
		list[i] = sessions.MediaPage{Number: i + 1, Text: text}
	}
	m := sessions.Media{Event: f.Event, Kind: "docx", Name: f.Name, ID: f.Media, Bytes: 9, Pages: f.Pages, Tokens: 9}
	if err := s.store.Media.Keep(s.Context(), s.Lease, m, list); err != nil {
		s.Fatal(err)
	}
}

func (s *shelf) found(query string) (paths []string) {
	s.Helper()
	hits, err := s.store.Search.Search(s.Context(), s.Reader, memory.Query{Text: query, Limit: 8, From: memory.FromFiles})
	if err != nil {
		s.Fatal(err)
	}
	for _, h := range hits {
		paths = append(paths, h.Path)
	}
	return paths
}

func open(t *testing.T) *shelf {
	t.Helper()
	store, _, c := storetest.OpenChat(t)
	return &shelf{t, c, store}
}

// A content is kept once. One of the same name replaces the older one, whose pages are found no more; another name is another file.
func TestNewestVersionIsFound(t *testing.T) {
	t.Parallel()
	s := open(t)
	first := s.keep(sessions.KeptFile{Name: "手册.docx", Media: "a", KeptBy: "li", KeptFrom: 7}, "阈值是七巴", "蓝色阀门")
	again := s.keep(sessions.KeptFile{Name: "copy.docx", Media: "a", KeptBy: "wang", KeptFrom: 8}, "阈值是七巴", "蓝色阀门")
	if first.Version != 1 || first.Known || !again.Known || again.ID != first.ID || again.Name != "手册.docx" || again.KeptFrom != 7 {
		t.Errorf("kept %+v, again %+v", first, again)
	}
	second := s.keep(sessions.KeptFile{Name: "手册.DOCX", Media: "b", KeptBy: "li"}, "阈值是六巴")
	other := s.keep(sessions.KeptFile{Name: "名单.docx", Media: "c", KeptBy: "wang"}, "工号是八八四二")
	if second.ID != first.ID || second.Version != 2 || !second.Replaced || other.ID == first.ID {
		t.Errorf("second %+v, other %+v", second, other)
	}
	if got := s.found("蓝色阀门"); len(got) != 0 {
		t.Errorf("the older version is found: %v", got)
	}
	if got := s.found("阈值是多少巴"); len(got) != 1 || got[0] != sessions.KeptPath(second.ID, 1) {
		t.Errorf("found %v", got)
	}
	list := storetest.Must[[]sessions.KeptFile](t)(s.store.Files.Files(t.Context(), s.Lease.Key))
	if len(list) != 2 || list[0].ID != other.ID || list[1].Version != 2 {
		t.Errorf("listed %+v", list)
	}
}

// A file is replaced by its sender, its keeper, and a person with all rights. Another person's file of the same name leaves it as it is, however the
// name is written.
func TestOthersFileIsNotReplaced(t *testing.T) {
	t.Parallel()
	s := open(t)
	first := s.keep(sessions.KeptFile{Name: "Café（新）.docx", Media: "a", SentBy: "zhang", KeptBy: "li"}, "阈值是七巴")
	for i, name := range []string{"Café（新）.docx", "CAFÉ(新).DOCX", "Cafe\u0301（新）.docx"} {
		kept, err := s.tryKeep(sessions.KeptFile{Name: name, Media: fmt.Sprint("b", i), SentBy: "zhang", KeptBy: "mallory"}, "阈值是一巴")
		if !errors.Is(err, sessions.ErrOthersFile) || kept.ID != first.ID || kept.Version != 1 {
			t.Errorf("%q: %+v, %v", name, kept, err)
		}
	}
	if list := storetest.Must[[]sessions.KeptFile](t)(s.store.Files.Files(t.Context(), s.Lease.Key)); len(list) != 1 || list[0].Media != "a" || list[0].KeptBy != "li" {
		t.Errorf("listed %+v", list)
	}
	if got := s.found("阈值是多少巴"); len(got) != 1 || got[0] != sessions.KeptPath(first.ID, 1) {
		t.Errorf("found %v", got)
	}
	for i, may := range []sessions.FileRights{{IDs: []sessions.UserID{"", "zhang"}}, {All: true}} {
		f := sessions.KeptFile{Name: "café（新）.docx", Media: fmt.Sprint("c", i), SentBy: "zhang", KeptBy: "zhang", Pages: 1}
		s.attach(f, "阈值是八巴")
		if kept, err := s.store.Files.KeepFile(t.Context(), s.Lease, f, may); err != nil || kept.ID != first.ID || kept.Version != i+2 {
			t.Errorf("%+v: %+v, %v", may, kept, err)
		}
	}
}

// hook runs once before the first statement of a name.
type hook struct {
	name string
	do   func()
	once sync.Once
}

func (h *hook) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if strings.Contains(q.SQL, "-- name: "+h.name+" ") {
		h.once.Do(h.do)
	}
	return ctx
}

func (h *hook) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Pages are indexed before their file is visible. A sweep meanwhile does not leave the file with a part of its terms, and an erasure of its
// message keeps no file. Terms of a file that was not kept go with the next sweep.
func TestFileIsVisibleWithAllTerms(t *testing.T) {
	t.Parallel()
	store, pool, c := storetest.OpenChat(t)
	s := &shelf{t, c, store}
	said := c.Speak("m1", storetest.ZhangID, storetest.ZhangNick, "看这个", nil)
	f := sessions.KeptFile{Name: "a.docx", Media: "a", Event: said.EventID, Pages: 1, Kind: "docx"}
	s.attach(f, "阈值是七巴")
	indexed := func() int {
		return storetest.Number(t, pool, "SELECT count(*) FROM document_pages WHERE terms IS NOT NULL")
	}
	try := func(do string) (sessions.Keeping, error) {
		traced := storetest.OpenTraced(t, pool.Config().ConnString(), 4, &hook{name: "FileReady", do: func() {
			if n := storetest.Number(t, pool, "SELECT count(*) FROM files"); n != 0 || indexed() == 0 {
				t.Errorf("%d files and %d indexed pages before the end", n, indexed())
			}
			storetest.Must[pgconn.CommandTag](t)(pool.Exec(t.Context(), do))
		}})
		return traced.Files.KeepFile(t.Context(), c.Lease, f, sessions.FileRights{})
	}
	if _, err := try("DELETE FROM attachments"); !errors.Is(err, sessions.ErrNotFound) || indexed() != 1 {
		t.Errorf("after an erasure: %v, %d indexed pages", err, indexed())
	}
	s.attach(f)
	s.keep(sessions.KeptFile{Name: "b", Media: "b", KeptBy: "li"}, "其他")
	s.attach(f)
	s.keep(sessions.KeptFile{Name: "b", Media: "c", KeptBy: "li"}, "其他") // the replacement sweeps
	if n := indexed(); n != 1 || len(s.found("阈值是多少巴")) != 0 {
		t.Errorf("%d indexed pages after a sweep", n)
	}
	s.attach(f, "阈值是七巴")
	storetest.Must[pgconn.CommandTag](t)(pool.Exec(t.Context(), "DELETE FROM files"))
	if kept, err := try("UPDATE document_pages SET terms = NULL"); err != nil || kept.Version != 1 || len(s.found("阈值是多少巴")) != 1 {
		t.Errorf("after a sweep: %+v, %v, %d indexed pages", kept, err, indexed())
	}
}

// The largest document has 2,000 pages and 8 MB of text. It takes the lock of its session for 100 pages at a time, so that messages are stored
// meanwhile.
func TestLargestFileLeavesTheSessionFree(t *testing.T) {
	t.Parallel()
	locks := counter{name: "LeaseLock"}
	store := storetest.OpenTraced(t, sqltest.URL(t), 4, &locks)
	s := &shelf{t, storetest.NewChat(t, store, "cid", "zhang", false), store}
	const pages, size = 2000, 4 << 10
	list := make([]string, pages)
	for i := range list {
		var b strings.Builder
		for n := 0; b.Len() < size; n++ {
			fmt.Fprintf(&b, "第 %d 章第 %d 节说明设备 %d 的日常维护步骤和注意事项，交班时签字确认。", i, n, i*n)
		}
		list[i] = b.String()
	}
	f := sessions.KeptFile{Name: "a.docx", Media: "a", Kind: "docx", Pages: pages}
	s.attach(f, list...)
	before, began := locks.Load(), time.Now()
	storetest.Must[sessions.Keeping](t)(store.Files.KeepFile(t.Context(), s.Lease, f, sessions.FileRights{}))
	t.Logf("kept %d pages in %v", pages, time.Since(began))
	if n := locks.Load() - before; n != pages/100+1 {
		t.Errorf("%d transactions", n)
	}
}

// A page of a long file is found by its words and by the name of the file, at the page's end too, and in this conversation alone.
func TestPageOfLongFileIsFound(t *testing.T) {
	t.Parallel()
	s := open(t)
	pages := make([]string, 500)
	for i := range pages {
		pages[i] = fmt.Sprintf("第%d章 设备日常维护的说明和注意事项。", i+1) + strings.Repeat("按时检查各处的螺栓与油位，做好记录，交班时说明情况。", 30)
	}
	pages[179] += "校准泵的压力阈值是 7.3 巴。"
	began := time.Now()
	f := s.keep(sessions.KeptFile{Name: "设备手册.docx", Media: "a"}, pages...)
	t.Logf("kept 500 pages in %v", time.Since(began))
	hits := storetest.Must[[]memory.Hit](t)(s.store.Search.Search(t.Context(), s.Reader, memory.Query{Text: "校准泵的压力阈值是多少？", Limit: 8}))
	if len(hits) == 0 || hits[0].Path != sessions.KeptPath(f.ID, 180) || !strings.Contains(hits[0].Content, "7.3 巴") || !strings.Contains(hits[0].Who, "《设备手册.docx》 第 180 页 page 180") {
		t.Fatalf("found %+v", hits)
	}
	size := 0
	for _, h := range hits {
		size += len([]rune(h.Content))
	}
	if size > 6000 {
		t.Errorf("%d characters in the finds", size)
	}
	if got := s.found("设备手册"); len(got) == 0 {
		t.Error("nothing is found by the name of the file")
	}
	other := storetest.NewChat(t, s.store, "elsewhere", "zhang", false)
	if got := storetest.Must[[]memory.Hit](t)(s.store.Search.Search(t.Context(), other.Reader, memory.Query{Text: "校准泵的压力阈值", Limit: 8})); len(got) != 0 {
		t.Errorf("another conversation finds %+v", got)
	}
}

// counter counts statements: those of a name, or all.
type counter struct {
	atomic.Int64
	name string
}

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if c.name == "" || strings.Contains(q.SQL, "-- name: "+c.name+" ") {
		c.Add(1)
	}
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A search of a conversation without files takes no statement for them, and one with files three.
func TestSearchWithoutFilesCostsNothing(t *testing.T) {
	t.Parallel()
	var n counter
	store := storetest.OpenTraced(t, sqltest.URL(t), 4, &n)
	c := storetest.NewChat(t, store, "cid", "zhang", false)
	c.Say("u", "发布窗口是周五")
	s := &shelf{t, c, store}
	search := func(from memory.Source) int64 {
		before := n.Load()
		storetest.Must[[]memory.Hit](t)(store.Search.Search(t.Context(), c.Reader, memory.Query{Text: "发布窗口", Limit: 8, From: from}))
		return n.Load() - before
	}
	all, events := search(memory.FromAll), search(memory.FromEvents)
	facts := search(memory.FromMemories)
	if files := search(memory.FromFiles); files != 1 {
		t.Errorf("a search of files takes %d statements where there are none", files)
	}
	if all > events+facts {
		t.Errorf("%d statements for all, %d for the log and %d for facts", all, events, facts)
	}
	s.keep(sessions.KeptFile{Name: "a.docx", Media: "a"}, "发布窗口见附表")
	if after := search(memory.FromEvents); after != events {
		t.Errorf("a search of the log takes %d statements, %d before", after, events)
	}
	if with := search(memory.FromAll); with != all+3 {
		t.Errorf("a search takes %d statements with a file, %d without", with, all)
	}
}

// A conversation keeps no more files and pages than it may; a new version of a file counts without the old one.
func TestBounds(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.keep(sessions.KeptFile{Name: "large", Media: "large", KeptBy: "li", Pages: sessions.MaxFilePages - sessions.MaxFiles})
	if _, err := s.tryKeep(sessions.KeptFile{Name: "more", Media: "more", Pages: sessions.MaxFiles + 1}); !errors.Is(err, sessions.ErrManyPages) {
		t.Errorf("too many pages: %v", err)
	}
	s.keep(sessions.KeptFile{Name: "large", Media: "newer", KeptBy: "li", Pages: sessions.MaxFilePages - sessions.MaxFiles})
	for i := range sessions.MaxFiles - 1 {
		s.keep(sessions.KeptFile{Name: fmt.Sprint("f", i), Media: fmt.Sprint("m", i), KeptBy: "li", Pages: 1})
	}
	if _, err := s.tryKeep(sessions.KeptFile{Name: "one more", Media: "one more", Pages: 1}); !errors.Is(err, sessions.ErrManyFiles) {
		t.Errorf("too many files: %v", err)
	}
	s.keep(sessions.KeptFile{Name: "f3", Media: "f3 again", KeptBy: "li", Pages: 1})
	stale := s.Lease
	stale.Term--
	if _, err := s.store.Files.KeepFile(t.Context(), stale, sessions.KeptFile{Name: "f3", Media: "late"}, sessions.FileRights{All: true}); !errors.Is(err, sessions.ErrLeaseLost) {
		t.Errorf("a stale lease keeps a file: %v", err)
	}
}

// A page that a model refuses is not found for that model. Another one finds it, and a version that is kept later is not marked.
func TestRefusedPageIsNotFound(t *testing.T) {
	t.Parallel()
	s := open(t)
	f := s.keep(sessions.KeptFile{Name: "a.docx", Media: "a", KeptBy: "li"}, "阈值是七巴", "阈值另见附录")
	page := sessions.PageID{Media: "a", Number: 2}
	if text, err := s.store.Files.Page(t.Context(), s.Lease.Key, page); err != nil || text != "阈值另见附录" {
		t.Errorf("the page is %q, %v", text, err)
	}
	if _, err := s.store.Files.Page(t.Context(), s.Lease.Key, sessions.PageID{Media: "a", Number: 3}); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("a page that is not there: %v", err)
	}
	w := sessions.Withholding{Model: "strict", Class: "refused", At: time.Now(), Pages: []sessions.PageID{page}}
	if err := s.store.Files.WithholdPages(t.Context(), s.Lease.Key, w); err != nil {
		t.Fatal(err)
	}
	for model, want := range map[sessions.ModelID]int{"strict": 1, "other": 2, "": 2} {
		s.Reader.Reads = model
		if got := s.found("阈值是多少"); len(got) != want || got[0] != sessions.KeptPath(f.ID, 1) && want == 1 {
			t.Errorf("%q finds %v", model, got)
		}
	}
	pages := storetest.Must[[]sessions.MediaPage](t)(s.store.Media.Pages(t.Context(), s.Lease.Key, "a", 1, 2))
	if len(pages) != 2 || len(pages[0].Withheld) != 0 || !pages[1].Withheld.From("strict", sessions.WithheldBody) || pages[1].Withheld.From("other", sessions.WithheldBody) {
		t.Errorf("pages %+v", pages)
	}
}

// A forgotten file is gone with its text, also from the message that brought it, and the row of the session counts the rest.
func TestForgottenFileIsGone(t *testing.T) {
	t.Parallel()
	store, pool, c := storetest.OpenChat(t)
	s := &shelf{t, c, store}
	said := c.Speak("m1", storetest.ZhangID, storetest.ZhangNick, "看这个", nil)
	f := s.keep(sessions.KeptFile{Name: "a.docx", Media: "a", Event: said.EventID}, "内容 "+storetest.Secret)
	if n := storetest.Number(t, pool, "SELECT files FROM dingtalk_sessions WHERE session_key = $1", c.Lease.Key); n != 1 {
		t.Errorf("the session counts %d files", n)
	}
	if err := store.Files.ForgetFile(t.Context(), c.Lease.Key, f.ID); err != nil {
		t.Fatal(err)
	}
	storetest.WantGone(t, pool, storetest.Secret)
	if n := storetest.Number(t, pool, "SELECT files + (SELECT count(*) FROM attachments) FROM dingtalk_sessions WHERE session_key = $1", c.Lease.Key); n != 0 {
		t.Errorf("%d files and attachments are left", n)
	}
	if err := store.Files.ForgetFile(t.Context(), c.Lease.Key, f.ID); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("forgotten twice: %v", err)
	}
}
