package bot_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/bot/bottest"
	"ebb/compaction"
	"ebb/sessions"
)

// ranged is a row that summarizes a range of events.
type ranged struct{ Start, End, Count int64 }

// logRow is a row of the log that has a place.
type logRow struct {
	Seq      int64
	Role     string
	Archived bool
	Content  string
	Blob     *string
	Body     *string
}

// rows are the answers to a query.
func rows[T any](t *testing.T, db *pgx.Conn, query string, args ...any) []T {
	t.Helper()
	got, err := db.Query(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	out, err := pgx.CollectRows(got, pgx.RowToStructByPos[T])
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return out
}

// whole checks the session's tables: summaries and raw events are the log, end to end, and nothing is half done.
func (p *place) whole() {
	p.t.Helper()
	t, db, s := p.t, p.db(), p.look()
	base := one[int64](t, db, "SELECT base_seq FROM dingtalk_sessions WHERE session_key = $1", bottest.Group)
	archived := base
	for _, r := range rows[ranged](t, db, `SELECT start_seq, end_seq, msg_count::bigint FROM session_summaries
		WHERE session_key = $1 AND status = 'active' ORDER BY start_seq`, bottest.Group) {
		bottest.Want(t, "begin of a summary", r.Start, archived+1)
		bottest.Want(t, "events by its count", r.Count, r.End-r.Start+1)
		archived = r.End
	}
	bottest.Want(t, "cursor", s.CompactedSeq, archived)
	bottest.Want(t, "compactions with summaries", one[int](t, db, `SELECT count(*) FROM compaction_log
		WHERE session_key = $1 AND outcome = 'committed' AND summary_id IS NOT NULL`, bottest.Group), s.CompactionCount)
	bottest.Want(t, "marks of summaries in the log", one[int](t, db, `SELECT count(*) FROM dingtalk_session_events
		WHERE session_key = $1 AND role = 'summary'`, bottest.Group), s.CompactionCount)
	var raw []sessions.Event
	next := int64(1)
	for _, e := range rows[logRow](t, db, `SELECT e.seq, e.role, e.is_archived, e.content, e.blob_id, b.body
		FROM dingtalk_session_events e LEFT JOIN blobs b ON b.session_key = e.session_key AND b.blob_id = e.blob_id
		WHERE e.session_key = $1 AND e.seq IS NOT NULL ORDER BY e.seq`, bottest.Group) {
		bottest.Want(t, "place in the log", e.Seq, next)
		next++
		bottest.Want(t, "archived by a summary", e.Archived, e.Seq > base && e.Seq <= archived)
		if e.Seq <= archived {
			continue
		}
		raw = append(raw, sessions.Event{Seq: e.Seq, Role: sessions.Role(e.Role)})
		if e.Blob != nil && (e.Body == nil || *e.Body != e.Content || sessions.BlobOf(*e.Body) != *e.Blob) {
			t.Errorf("the result at %d was moved out, and is not where the view says", e.Seq)
		}
	}
	bottest.Want(t, "end of the log", next, s.LastSeq+1)
	bottest.Want(t, "stored results that no view refers to", one[int](t, db, `SELECT count(*) FROM blobs b WHERE NOT EXISTS (
		SELECT FROM dingtalk_session_events e WHERE e.session_key = b.session_key AND e.blob_id = b.blob_id AND e.seq > $1)`, archived), 0)
	p.tail(raw, s)
}

// tail checks that as much is raw as the policy promises.
func (p *place) tail(raw []sessions.Event, s sessions.Session) {
	p.t.Helper()
	if s.CompactedSeq == 0 {
		return
	}
	policy := p.talk.settings.Policy
	if turns := len(compaction.TurnStarts(raw)); turns < max(1, policy.TailTurns) {
		p.t.Errorf("%d turns are raw, want %d", turns, policy.TailTurns)
	}
	if policy.TailShare == 0 && len(raw) < policy.TailMessages {
		p.t.Errorf("%d events are raw, want %d", len(raw), policy.TailMessages)
	}
}
