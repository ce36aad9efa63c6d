package sessionstest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"ebb/sessions"
)

var (
	bigBody   = strings.Repeat("一行结果, 42 rows\n", 3)
	otherBody = strings.Repeat("other ", 5)
)

// runTools commits a question, tool calls, the results given and the answer.
func (b *suite) runTools(n int, bodies ...string) sessions.Lease {
	b.Helper()
	b.sendBeat(replicaA)
	b.acceptMessage(replicaA, n)
	l := b.acquireLease(replicaA)
	t := newAnswer(b.beginTurn(l, 1))
	calls := make([]sessions.ToolCall, 0, len(bodies))
	results := make([]sessions.Event, 0, len(bodies))
	for i, body := range bodies {
		id := fmt.Sprintf("call-%d-%d", n, i)
		calls = append(calls, sessions.ToolCall{ID: id, Name: "query", Arguments: `{"n":1}`})
		results = append(results, sessions.Event{Role: sessions.RoleTool, ToolCallID: id, ToolName: "query", Content: body, Tokens: 200})
	}
	t.Events = append([]sessions.Event{{Role: sessions.RoleAssistant, ToolCalls: calls, Tokens: 3}}, append(results, t.Events...)...)
	t.TotalTokens += 3 + 200*len(bodies)
	b.commitTurn(l, t)
	return l
}

func (b *suite) offloadResults(l sessions.Lease, seqs ...int64) sessions.Compacted {
	b.Helper()
	v := b.beginTurn(l, 0)
	c := sessions.Compaction{
		Gen: v.Session.Gen, From: v.Session.CompactedSeq, Through: v.Session.CompactedSeq, Freed: 150 * len(seqs),
		Log: sessions.LogEntry{Trigger: "offload", TokensBefore: v.Session.TotalTokens, TokensAfter: v.Session.TotalTokens - 150*len(seqs)},
	}
	for _, e := range v.Tail {
		if slices.Contains(seqs, e.Seq) {
			c.Shown = append(c.Shown, blobReference(e))
		}
	}
	return b.compactSession(l, c)
}

func blobReference(e sessions.Event) sessions.Shown {
	blob := sessions.BlobOf(e.Content)
	return sessions.Shown{Seq: e.Seq, Text: "Tool result is at: " + sessions.BlobPath(blob), Tokens: 50, Blob: blob}
}

func (b *suite) keptBlobs(bodies ...string) {
	b.Helper()
	var want []string
	for _, body := range bodies {
		want = append(want, sessions.BlobOf(body))
	}
	slices.Sort(want)
	if got := b.Blobs(b.T, key); !slices.Equal(got, want) {
		b.Errorf("kept are the bodies %v, want %v", got, want)
	}
}

// P76: an offloaded result can be read, and is summarized in its original words.
func testOffload(b *suite) {
	l := b.runTools(1, bigBody, otherBody)
	before := b.beginTurn(l, 0)
	if done := b.offloadResults(l, 3, 4); done.BlobsDeleted != 0 {
		b.Errorf("moving results out deleted %d bodies", done.BlobsDeleted)
	}
	v := b.beginTurn(l, 0)
	e := v.Tail[2]
	if want := blobReference(before.Tail[2]); e.Content != want.Text || e.Blob != want.Blob || e.Tokens != 50 || e.ToolCallID != "call-1-0" {
		b.Errorf("the view shows the result as %+v, want the reference to %s", e, want.Blob)
	}
	if s := v.Session; s.CompactionCount != 0 || !s.CompactedAt.IsZero() || s.CompactedSeq != 0 || len(v.Summaries) != 0 ||
		s.TotalTokens != before.Session.TotalTokens-300 {
		b.Errorf("nothing was summarized, but the session is %+v", s)
	}
	body, err := b.Other.Compactions.Blob(b.ctx, key, e.Blob)
	b.checkError(err)
	if body != bigBody {
		b.Errorf("the result reads %q", body)
	}
	if log := b.Log(b.T, key); log[2].Content != bigBody || log[2].Blob != "" || log[2].Tokens != 200 {
		b.Errorf("the log has the result as %+v, want it as it was said", log[2])
	}
	src, err := b.Store.Jobs.OpenJob(b.ctx, l, sessions.Job{Through: 5})
	b.checkError(err)
	if !reflect.DeepEqual(src.Events, before.Tail) {
		b.Errorf("the job has\n%+v\nwant\n%+v", src.Events, before.Tail)
	}
	for _, unknown := range []string{"", "no such", sessions.BlobOf("never said"), strings.ToUpper(e.Blob), "\x00"} {
		_, err := b.Store.Compactions.Blob(b.ctx, key, unknown)
		b.wantError(err, sessions.ErrNotFound, fmt.Sprintf("reading the result %q", unknown))
	}
	_, err = b.Store.Compactions.Blob(b.ctx, sessions.NewKey("robot", "another", ""), e.Blob)
	b.wantError(err, sessions.ErrNotFound, "reading another session's result")
}

// A missing or spoilt body is read from the log, while that has it.
func testBlobLogged(b *suite) {
	l := b.runTools(1, bigBody, otherBody)
	before := b.beginTurn(l, 0)
	b.offloadResults(l, 3, 4)
	gone, spoilt := sessions.BlobOf(bigBody), sessions.BlobOf(otherBody)
	b.SpoilBlob(b.T, key, gone, "")
	b.SpoilBlob(b.T, key, spoilt, otherBody+"!")
	reads := func(when string) {
		b.Helper()
		for blob, want := range map[string]string{gone: bigBody, spoilt: otherBody} {
			if body, err := b.Other.Compactions.Blob(b.ctx, key, blob); err != nil || body != want {
				b.Errorf("%s the result reads %q (%v), want %q", when, body, err, want)
			}
		}
	}
	reads("while the view refers to it")
	src, err := b.Store.Jobs.OpenJob(b.ctx, l, sessions.Job{Through: 5})
	b.checkError(err)
	if !reflect.DeepEqual(src.Events, before.Tail) {
		b.Errorf("the job has\n%+v\nwant\n%+v", src.Events, before.Tail)
	}
	b.compactSession(l, newCompaction(0, 5))
	b.keptBlobs()
	reads("after its summary")
	_, err = b.Store.Compactions.Blob(b.ctx, sessions.NewKey("robot", "another", ""), gone)
	b.wantError(err, sessions.ErrNotFound, "reading another session's result")
	b.eraseEvent(3)
	_, err = b.Store.Compactions.Blob(b.ctx, key, gone)
	b.wantError(err, sessions.ErrNotFound, "reading a result that was erased")
}

// P76: a result that is lost is reported as unavailable, and the rest is summarized.
func testBlobFaults(b *suite) {
	l := b.runTools(1, bigBody, otherBody)
	b.offloadResults(l, 3, 4)
	gone, spoilt := sessions.BlobOf(bigBody), sessions.BlobOf(otherBody)
	b.SpoilBlob(b.T, key, gone, "")
	b.SpoilBlob(b.T, key, spoilt, otherBody+"!")
	b.Edit(b.T, key, 3, bigBody+"?")
	b.Edit(b.T, key, 4, otherBody+"?")
	src, err := b.Store.Jobs.OpenJob(b.ctx, l, sessions.Job{Through: 5})
	b.checkError(err)
	if got, want := src.Events[2], "[Content unavailable: "+sessions.BlobPath(gone)+"]"; got.Content != want || got.Blob != gone {
		b.Errorf("the job has the missing result as %q, want %q", got.Content, want)
	}
	if got, want := src.Events[3], "[Content unavailable: "+sessions.BlobPath(spoilt)+"]"; got.Content != want || got.Blob != spoilt {
		b.Errorf("the job has the other result as %q, want %q", got.Content, want)
	}
	if len(src.Events) != 5 || src.Events[4].Content != "答复" {
		b.Errorf("the job has the rest as %q", eventContents(src.Events))
	}
	for _, blob := range []string{gone, spoilt} {
		_, err := b.Store.Compactions.Blob(b.ctx, key, blob)
		b.wantError(err, sessions.ErrNotFound, "reading a result that is gone or another one")
	}
	c := newCompaction(0, 5)
	c.Source = src.Hash
	b.compactSession(l, c) // the log still has the source
}

// P77, P78: a body is kept exactly as long as an event of the view refers to it.
func testBlobsCounted(b *suite) {
	l := b.runTools(1, bigBody, otherBody) // 1 to 5
	b.runTools(2, bigBody)                 // 6 to 9: the same result again
	b.offloadResults(l, 3, 4)
	b.offloadResults(l, 8)
	b.keptBlobs(bigBody, otherBody)
	c := newCompaction(0, 5)
	c.Log.Audit = `{"recall":1}`
	if done := b.compactSession(l, c); done.BlobsDeleted != 1 {
		b.Errorf("the compaction deleted %d bodies, want that of summarized events alone", done.BlobsDeleted)
	}
	b.keptBlobs(bigBody)
	rows, err := b.Store.Compactions.Compactions(b.ctx, key, 1)
	b.checkError(err)
	var audit struct {
		Recall  int      `json:"recall"`
		Deleted int      `json:"offloads_deleted"`
		Files   []string `json:"deleted_files"`
	}
	err = json.Unmarshal([]byte(rows[0].Audit), &audit)
	if err != nil || audit.Recall != 1 || audit.Deleted != 1 || !slices.Equal(audit.Files, []string{sessions.BlobPath(sessions.BlobOf(otherBody))}) {
		b.Errorf("the log says of it %s (%v)", rows[0].Audit, err)
	}
	if body, err := b.Store.Compactions.Blob(b.ctx, key, sessions.BlobOf(bigBody)); err != nil || body != bigBody {
		b.Errorf("the result that the view refers to reads %q (%v)", body, err)
	}
	whole := sessions.Compaction{From: 5, Through: 5, Shown: []sessions.Shown{{Seq: 8, Text: "cleared", Tokens: 1}}}
	if done := b.compactSession(l, whole); done.BlobsDeleted != 1 {
		b.Errorf("showing the result without a reference deleted %d bodies, want 1", done.BlobsDeleted)
	}
	b.keptBlobs()
	if e := b.beginTurn(l, 0).Tail[2]; e.Content != "cleared" || e.Blob != "" {
		b.Errorf("the view shows %+v", e)
	}
}

// P78: a refused attempt leaves no body behind.
func testShownRefused(b *suite) {
	l := b.runTools(1, bigBody, otherBody)
	tail := b.beginTurn(l, 0).Tail
	lie := blobReference(tail[2])
	lie.Blob = sessions.BlobOf("a body without an event")
	gap := sessions.Compaction{Through: 2, Summaries: newSummaries(2, 2), Shown: []sessions.Shown{blobReference(tail[2])}}
	for name, bad := range map[string]sessions.Compaction{
		"under another address": {Shown: []sessions.Shown{blobReference(tail[3]), lie}},
		"with a gap":            gap,
		"in another generation": {Gen: 1, Shown: []sessions.Shown{blobReference(tail[2])}},
	} {
		_, err := b.Store.Compactions.Compact(b.ctx, l, bad)
		b.wantError(err, sessions.ErrConflict, "moving a result out "+name)
	}
	b.keptBlobs()
	if got := b.beginTurn(l, 0).Tail; eventContents(got) != eventContents(tail) {
		b.Errorf("refused attempts left the view %q", eventContents(got))
	}
	// Events that no view shows, and some that do not exist.
	c := newCompaction(0, 4)
	c.Shown = []sessions.Shown{blobReference(tail[2]), {Seq: 99, Text: "x"}, {Seq: 0, Text: "x"}, {Seq: -1, Text: "x"}}
	b.compactSession(l, c)
	b.keptBlobs()
}
