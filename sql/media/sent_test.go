package media_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

func TestMain(m *testing.M) { sqltest.Main(m) }

// A file is stored under the lease of its turn. Another attempt replaces the file of the same source.
func TestSentFileIsKeptUnderItsLease(t *testing.T) {
	t.Parallel()
	s, _, c := storetest.OpenChat(t)
	keep := func(l sessions.Lease, event int64, f sessions.File) int64 {
		t.Helper()
		id, err := s.Sent.Keep(t.Context(), l, event, f)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := keep(c.Lease, 7, sessions.File{Source: "call-1", Name: "a.png", Kind: sessions.FileImage, Body: []byte("old")})
	second := keep(c.Lease, 7, sessions.File{Source: "call-2", Name: "b.csv", Kind: sessions.FilePlain, Body: []byte("b")})
	keep(c.Lease, 8, sessions.File{Source: "call-1", Name: "c.png", Kind: sessions.FileImage, Body: []byte("c")})
	if again := keep(c.Lease, 7, sessions.File{Source: "call-1", Name: "new.png", Kind: sessions.FileImage, Body: []byte("new")}); again != first {
		t.Errorf("another attempt stored file %d, want %d again", again, first)
	}
	files, err := s.Sent.Kept(t.Context(), c.Lease.Key, []int64{7})
	if err != nil {
		t.Fatal(err)
	}
	want := []sessions.File{{ID: first, Source: "call-1", Name: "new.png", Kind: sessions.FileImage}, {ID: second, Source: "call-2", Name: "b.csv", Kind: sessions.FilePlain}}
	if !slices.EqualFunc(files, want, func(a, b sessions.File) bool {
		return a.ID == b.ID && a.Source == b.Source && a.Name == b.Name && a.Kind == b.Kind && a.Body == nil
	}) {
		t.Errorf("kept are %+v, want %+v", files, want)
	}
	if body, err := s.Sent.Body(t.Context(), c.Lease.Key, first); err != nil || string(body) != "new" {
		t.Errorf("its bytes are %q, %v", body, err)
	}
	stale := c.Lease
	stale.Term--
	if _, err := s.Sent.Keep(t.Context(), stale, 7, sessions.File{Source: "call-3", Body: []byte("x")}); !errors.Is(err, sessions.ErrLeaseLost) {
		t.Errorf("under an older lease the error is %v", err)
	}
}

// A deleted file is not found. Deleting it again, or the file of another session, changes nothing.
func TestSentFileIsDeleted(t *testing.T) {
	t.Parallel()
	s, _, c := storetest.OpenChat(t)
	id, err := s.Sent.Keep(t.Context(), c.Lease, 7, sessions.File{Source: "call-1", Name: "a.png", Kind: sessions.FileImage, Body: []byte("a")})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Sent.Delete(t.Context(), c.Lease.Key+"x", id); err != nil {
		t.Error(err)
	}
	if _, err := s.Sent.Body(t.Context(), c.Lease.Key, id); err != nil {
		t.Errorf("after the deletion in another session: %v", err)
	}
	for range 2 {
		if err := s.Sent.Delete(t.Context(), c.Lease.Key, id); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Sent.Body(t.Context(), c.Lease.Key, id); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("after its deletion: %v", err)
	}
}

// The file of a stopped turn has no reply: it goes after the period, and a younger one stays.
func TestSentFileWithoutAReplyExpires(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	for _, source := range []string{"old", "young"} {
		if _, err := s.Sent.Keep(t.Context(), c.Lease, 7, sessions.File{Source: source, Name: source, Kind: sessions.FileImage, Body: []byte(source)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(t.Context(), "UPDATE sent_files SET created_at = now() - interval '2 hours' WHERE source = 'old'"); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Retention.ExpireSentFiles(t.Context(), time.Hour); n != 1 || err != nil {
		t.Errorf("deleted %d, %v", n, err)
	}
	files, err := s.Sent.Kept(t.Context(), c.Lease.Key, []int64{7})
	if err != nil || len(files) != 1 || files[0].Source != "young" {
		t.Errorf("kept are %+v, %v", files, err)
	}
}
