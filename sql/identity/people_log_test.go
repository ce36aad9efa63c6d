package identity_test

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
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/dbsqlc"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// peopleOfLogs are the rows that the table of people must have, as the logs say.
const peopleOfLogs = `SELECT session_key, sender_id AS person, sender_nick AS nick, true AS spoke FROM dingtalk_session_events
		WHERE seq IS NOT NULL AND sender_id <> ''
	UNION SELECT session_key, message #>> '{quote,sender_id}', coalesce(message #>> '{quote,nick}', ''), false FROM dingtalk_session_events
		WHERE seq IS NOT NULL AND message #>> '{quote,sender_id}' <> ''`

// wantPeople compares the table of people with the logs, and the sessions of each person with all events, open ones too.
func wantPeople(t *testing.T, pool *pgxpool.Pool, people ...sessions.UserID) (faults []string) {
	t.Helper()
	const table = "SELECT session_key, person, nick, spoke FROM people"
	for name, query := range map[string]string{
		"without a row": peopleOfLogs + " EXCEPT " + table, "not in the log": table + " EXCEPT (" + peopleOfLogs + ")",
	} {
		for _, row := range storetest.Collect(t, pool, "SELECT concat_ws(' ', x.*) FROM ("+query+") x", pgx.RowTo[string]) {
			faults = append(faults, name+": "+row)
		}
	}
	for _, who := range people {
		rows := storetest.Must[[]dbsqlc.PersonLogsRow](t)(dbsqlc.New().PersonLogs(t.Context(), pool, &dbsqlc.PersonLogsParams{People: []string{string(who)}}))
		var got []string
		for _, r := range rows {
			got = append(got, fmt.Sprint(r.SessionKey, " ", r.Spoke))
		}
		want := storetest.Collect(t, pool, `SELECT session_key || ' ' || bool_or(sender_id = $1)::text FROM dingtalk_session_events
			WHERE sender_id = $1 OR message #>> '{quote,sender_id}' = $1 GROUP BY session_key`, pgx.RowTo[string], who)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			faults = append(faults, fmt.Sprintf("%s is found in %q, and is in %q", who, got, want))
		}
	}
	return faults
}

// town is some conversations of some people at two replicas, which may be killed.
type town struct {
	*rapid.T
	t        *testing.T
	url      string
	pool     *pgxpool.Pool
	replicas []*replica
	said     int
	round    int
}

type replica struct {
	*sql.Store
	id sessions.ReplicaID
}

var townspeople = []sessions.UserID{"ann", "bob"}

func (w *town) start() *replica {
	s, err := sql.Open(w.t.Context(), sql.Options{URL: w.url, MaxConns: 4})
	if err != nil {
		w.t.Fatal(err)
	}
	w.said++
	r := &replica{s, sessions.ReplicaID(fmt.Sprint("replica", w.round, "-", w.said))}
	if _, err := s.Leases.Beat(w.t.Context(), r.id); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// kill replaces a replica by a new process. Its leases are stale at once.
func (w *town) kill(i int) {
	w.replicas[i].Close()
	storetest.Execute(w.t, w.pool, "DELETE FROM replicas WHERE id = $1", w.replicas[i].id)
	w.replicas[i] = w.start()
}

func (w *town) key() sessions.Key {
	return sessions.NewKey(storetest.Robot, sessions.ConversationID(fmt.Sprint(rapid.SampledFrom([]string{"group", "group", "dm"}).Draw(w.T, "session"), w.round)), "")
}

func (w *town) replica() (int, *replica) {
	i := rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(w.T, "replica")
	return i, w.replicas[i]
}

func (w *town) say() {
	_, r := w.replica()
	key := w.key()
	_, conversation := key.Conversation()
	w.said++
	m := sessions.Message{
		RobotCode: storetest.Robot, ConversationID: conversation, ConversationType: sessions.Group, ID: sessions.MessageID(fmt.Sprint("m", w.round, "-", w.said)),
		SenderID: rapid.SampledFrom(townspeople).Draw(w.T, "who"), SenderNick: rapid.SampledFrom([]string{"A", "A", "A", "B", ""}).Draw(w.T, "nick"),
		Text: fmt.Sprint("word", w.said), Kind: "text",
	}
	if strings.HasPrefix(string(conversation), "dm") {
		m.ConversationType, m.SenderID = sessions.Private, "ann"
	}
	if rapid.IntRange(0, 3).Draw(w.T, "quotes") == 0 {
		m.Quote = &sessions.Quote{ID: "q", SenderID: rapid.SampledFrom(townspeople).Draw(w.T, "of"), Nick: "Q", Text: "quoted"}
	}
	storetest.Must[sessions.Accepted](w.t)(r.Inbox.Accept(w.t.Context(), r.id, key, m))
}

// turn answers what waits, if the replica can have the lease. A hurried one may be cut off at any moment, and is killed then.
func (w *town) turn(ctx context.Context) {
	i, r := w.replica()
	key := w.key()
	l, err := r.Leases.Acquire(w.t.Context(), key, r.id)
	if err != nil {
		return
	}
	v := storetest.Must[sessions.View](w.t)(r.Turns.Begin(w.t.Context(), l, 20))
	turn := sessions.TurnResult{ViewVersion: v.Session.ViewVersion, Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "ok", Tokens: 1}}}
	for n, e := range v.Pending {
		if n == 0 && len(v.Pending) > 1 && rapid.IntRange(0, 4).Draw(w.T, "dead") == 0 {
			turn.Dead = append(turn.Dead, e.ID)
			continue
		}
		turn.Taken, turn.TakenTokens = append(turn.Taken, e.ID), append(turn.TakenTokens, 1)
	}
	if n := len(turn.Taken) - 1; n > 0 && rapid.IntRange(0, 2).Draw(w.T, "stops") == 0 { // the last one ended the turn of the others
		turn.Stops = []sessions.Event{{ID: turn.Taken[n], Tokens: 1}}
		turn.Taken, turn.TakenTokens = turn.Taken[:n], turn.TakenTokens[:n]
	}
	hurry := rapid.IntRange(0, 7).Draw(w.T, "hurry") == 0
	if hurry {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Duration(rapid.IntRange(0, 4000).Draw(w.T, "microseconds"))*time.Microsecond)
		defer stop()
	}
	if _, err := r.Turns.Commit(ctx, l, turn); err != nil && !hurry {
		w.Fatal(err)
	}
	if hurry {
		w.kill(i)
	}
}

func (w *town) forget() {
	_, r := w.replica()
	who := rapid.SampledFrom(townspeople).Draw(w.T, "who")
	storetest.Must[memory.Forgotten](w.t)(r.Erasure.ForgetPerson(w.t.Context(), memory.Forget{Robot: storetest.Robot, Person: who}))
	if left := storetest.Collect(w.t, w.pool, "SELECT concat_ws(' ', p.*) FROM people p WHERE p.person = $1", pgx.RowTo[string], who); len(left) > 0 {
		w.Fatalf("left of %s are %q", who, left)
	}
}

func (w *town) erase() {
	_, r := w.replica()
	key := w.key()
	seqs := storetest.PlacesOf(w.t, w.pool, key)
	if len(seqs) == 0 {
		return
	}
	if rapid.IntRange(0, 5).Draw(w.T, "whole") == 0 {
		storetest.Must[sessions.Deleted](w.t)(r.Erasure.Delete(w.t.Context(), key))
		return
	}
	storetest.Must[sessions.Erased](w.t)(r.Erasure.Erase(w.t.Context(), key, []int64{rapid.SampledFrom(seqs).Draw(w.T, "seq")}))
}

// The table of people has the names of the logs, whatever is said, renamed, quoted, killed and erased, at whichever replica.
func TestPeopleAreThoseOfTheLogs(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	_, pool := storetest.Open(t, url)
	round, failed := 0, false
	rapid.Check(t, func(rt *rapid.T) {
		if round++; round > 20 && !failed { // each round is hundreds of statements
			return
		}
		w := &town{T: rt, t: t, url: url, pool: pool, round: round}
		w.replicas = []*replica{w.start(), w.start()}
		defer func() {
			for _, r := range w.replicas {
				r.Close()
			}
		}()
		for range rapid.IntRange(20, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 15).Draw(rt, "step") {
			case 0, 1, 2, 3, 4, 5:
				w.say()
			case 6, 7, 8, 9, 10:
				w.turn(t.Context())
			case 11:
				w.kill(rapid.IntRange(0, 1).Draw(rt, "killed"))
			case 12, 13:
				w.forget()
			default:
				w.erase()
			}
			if faults := wantPeople(t, pool, townspeople...); len(faults) > 0 {
				failed = true
				rt.Fatalf("%s", strings.Join(faults, "\n"))
			}
		}
	})
}

// People whose commands ended a turn are found like those whom it answered, whether a command waited already or came later.
func TestPeopleWhoStoppedATurn(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", storetest.LiID, false)
	for _, waits := range []bool{true, false} {
		who := sessions.UserID(fmt.Sprint("stopper-", waits))
		said := c.Speak(fmt.Sprint("q", waits), storetest.LiID, "李", "早", nil)
		var stop sessions.Accepted
		speak := func() { stop = c.Speak(fmt.Sprint("s", waits), who, "停的人", "停", nil) }
		if waits {
			speak()
		}
		storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), said.Lease, 10))
		if !waits {
			speak()
		}
		storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), said.Lease, sessions.TurnResult{
			Taken: []int64{said.EventID}, TakenTokens: []int{1}, Stops: []sessions.Event{{ID: stop.EventID, Tokens: 1}},
		}))
		if faults := wantPeople(t, pool, storetest.LiID, who); len(faults) > 0 {
			t.Errorf("after a stop, which waited: %t: %q", waits, faults)
		}
		later := c.Speak(fmt.Sprint("l", waits), who, "停的人", "早", nil)
		storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), later.Lease, 10))
		c.Turn(who, "停的人", "早", later)
		if faults := wantPeople(t, pool, storetest.LiID, who); len(faults) > 0 {
			t.Errorf("after a question behind that stop, which waited: %t: %q", waits, faults)
		}
	}
}

// A process that noted a person notes them again after an erasure at another one.
func TestPersonOfALaterMessage(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	s, pool := storetest.Open(t, url)
	other, _ := storetest.Open(t, url)
	c := storetest.NewChat(t, s, "cid", storetest.LiID, false)
	for n := range 3 {
		said := c.Speak(fmt.Sprint("z", n), storetest.ZhangID, storetest.ZhangNick, "早", nil)
		storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), said.Lease, 10))
		c.Turn(storetest.ZhangID, storetest.ZhangNick, "早", said)
		if faults := wantPeople(t, pool, storetest.ZhangID, storetest.LiID); len(faults) > 0 {
			t.Fatalf("after turn %d: %q", n, faults)
		}
		storetest.Must[memory.Forgotten](t)(other.Erasure.ForgetPerson(t.Context(), memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID}))
		storetest.WantGone(t, pool, string(storetest.ZhangID), storetest.ZhangNick)
	}
}

// Retention deletes the names with the last message that had them, and leaves those that a turn has just noted.
func TestRetentionOfPeople(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", storetest.LiID, false)
	c.Named(storetest.ZhangID, "旧名", "早")
	c.Named(storetest.ZhangID, "新名", "早")
	storetest.Must[memory.Receipt](t)(s.Flushes.Flush(t.Context(), c.Lease, memory.Flush{Through: 6, Last: true}))
	storetest.Execute(t, pool, "UPDATE outbox SET state = 'sent', settled_at = now()")
	expire := func(through int) {
		t.Helper()
		storetest.Execute(t, pool, "UPDATE dingtalk_session_events SET created_at = now() - interval '60 hours' WHERE seq <= $1", through)
		storetest.Must[int](t)(s.Retention.ExpireEvents(t.Context(), c.Reader.Key, storetest.Period))
	}
	names := func() []string {
		return storetest.Collect(t, pool, "SELECT person || ' ' || nick FROM people ORDER BY 1", pgx.RowTo[string])
	}
	expire(2)
	if got := names(); len(got) != 3 {
		t.Errorf("names that were just noted are %q", got)
	}
	storetest.Execute(t, pool, "UPDATE people SET seen_at = seen_at - interval '3 hours'")
	expire(4)
	if got, want := names(), []string{string(storetest.ZhangID) + " 新名"}; !slices.Equal(got, want) {
		t.Errorf("names are %q, want %q", got, want)
	}
}

// A name stays as long as a message under it. The row may be an hour older than the message.
func TestRetentionKeepsPeopleOfTheLog(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", storetest.LiID, false)
	for i, who := range []sessions.UserID{"gone", "first", "later", "last"} {
		c.Named(who, fmt.Sprint("name", i), "早")
	}
	storetest.Must[memory.Receipt](t)(s.Flushes.Flush(t.Context(), c.Lease, memory.Flush{Through: 10, Last: true}))
	storetest.Execute(t, pool, "UPDATE outbox SET state = 'sent', settled_at = now()")
	for seq, hours := range map[int]float64{1: 90, 3: 60, 5: 40, 7: 37.1, 9: 4} {
		storetest.Execute(t, pool, "UPDATE dingtalk_session_events SET created_at = now() - interval '1 hour' * $1::float8 WHERE seq BETWEEN $2::bigint AND $2::bigint + 1", hours, seq)
	}
	for who, hours := range map[sessions.UserID]float64{storetest.LiID: 90, "gone": 60, "first": 40, "later": 38, "last": 4.9} {
		storetest.Execute(t, pool, "UPDATE people SET seen_at = now() - interval '1 hour' * $1::float8 WHERE person = $2", hours, who)
	}
	storetest.Must[int](t)(s.Retention.ExpireEvents(t.Context(), c.Reader.Key, storetest.Period))
	got := storetest.Collect(t, pool, "SELECT person FROM people ORDER BY 1", pgx.RowTo[string])
	if want := []string{"first", "last", "later"}; !slices.Equal(got, want) {
		t.Errorf("people are %q, want %q", got, want)
	}
	if faults := wantPeople(t, pool); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
}
