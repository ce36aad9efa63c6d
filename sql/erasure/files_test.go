package erasure_test

import (
	"testing"
	"time"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// keepFile stores a document of a message, and keeps it.
func keepFile(t *testing.T, c *storetest.Chat, f sessions.KeptFile, text string) {
	t.Helper()
	f.Kind, f.Pages = "docx", 1
	m := sessions.Media{Event: max(f.Event, f.KeptFrom), Kind: "docx", Name: f.Name, ID: f.Media, Pages: 1, Tokens: 9}
	if err := c.Store.Media.Keep(t.Context(), c.Lease, m, []sessions.MediaPage{{Number: 1, Text: text}}); err != nil {
		t.Fatal(err)
	}
	storetest.Must[sessions.Keeping](t)(c.Store.Files.KeepFile(t.Context(), c.Lease, f, sessions.FileRights{}))
}

// A kept file goes with its sender, with the sender's message, and with its keeper where the sender is not known. It stays without the name of
// another keeper, and it stays when retention deletes its message.
func TestErasuresAndKeptFiles(t *testing.T) {
	t.Parallel()
	zhang, li := storetest.ZhangID, storetest.LiID
	for name, tt := range map[string]struct {
		sent, kept sessions.UserID
		own        bool // the sender's message brought it
		do         func(t *testing.T, s *sql.Store, c *storetest.Chat, said, asked sessions.Accepted)
		stays      bool
		keptBy     sessions.UserID
	}{
		"the sender is erased":                    {sent: zhang, kept: li, do: forgetZhang},
		"the keeper is erased":                    {sent: li, kept: zhang, do: forgetZhang, stays: true},
		"the keeper of an unknown sender is":      {kept: zhang, do: forgetZhang},
		"another person is erased":                {sent: li, kept: li, do: forgetZhang, stays: true, keptBy: li},
		"the sender's message is erased":          {sent: zhang, kept: li, own: true, do: forgetSaid},
		"a message that quotes another's file is": {sent: li, kept: zhang, do: forgetSaid, stays: true, keptBy: zhang},
		"the conversation is deleted": {sent: li, kept: li, do: func(t *testing.T, s *sql.Store, c *storetest.Chat, _, _ sessions.Accepted) {
			storetest.Must[sessions.Deleted](t)(s.Erasure.Delete(t.Context(), c.Lease.Key))
		}},
		"retention deletes the message": {sent: zhang, kept: li, own: true, stays: true, keptBy: li, do: func(t *testing.T, s *sql.Store, c *storetest.Chat, _, _ sessions.Accepted) {
			storetest.Must[int](t)(s.Retention.ExpireEvents(t.Context(), c.Lease.Key, time.Nanosecond))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := storetest.Open(t, sqltest.URL(t))
			c := storetest.NewChat(t, s, "cid", zhang, false)
			c.Exchange(li, "大家好", "好")
			said := c.Speak("m1", zhang, storetest.ZhangNick, "看这个文件", nil)
			c.Turn(zhang, storetest.ZhangNick, "收到", said)
			f := sessions.KeptFile{Name: "a.docx", Media: "a", SentBy: tt.sent, KeptBy: tt.kept, KeptFrom: said.EventID}
			if tt.own {
				f.Event = said.EventID
			}
			keepFile(t, c, f, "内容 "+storetest.Secret)
			asked := c.Speak("m9", zhang, storetest.ZhangNick, "/forget", nil)
			tt.do(t, s, c, said, asked)
			list := storetest.Must[[]sessions.KeptFile](t)(s.Files.Files(t.Context(), c.Lease.Key))
			if !tt.stays {
				if len(list) != 0 {
					t.Errorf("left: %+v", list)
				}
				storetest.WantGone(t, pool, storetest.Secret)
				return
			}
			pages := storetest.Number(t, pool, "SELECT count(*) FROM document_pages WHERE terms IS NOT NULL")
			if len(list) != 1 || list[0].KeptBy != tt.keptBy || pages != 1 {
				t.Errorf("left: %+v and %d pages, want the file of %q", list, pages, tt.keptBy)
			}
		})
	}
}

func forgetZhang(t *testing.T, s *sql.Store, _ *storetest.Chat, _, _ sessions.Accepted) {
	t.Helper()
	storetest.ForgetZhang(t, s)
}

func forgetSaid(t *testing.T, s *sql.Store, c *storetest.Chat, said, asked sessions.Accepted) {
	t.Helper()
	storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetMessage(t.Context(), said.EventID, memory.Asking{Lease: asked.Lease, Event: asked.EventID}))
}
