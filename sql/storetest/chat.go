package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
	"ebb/sql/sqltest"
	"ebb/sql/yardstick"
)

// Robot is the robot of each chat.
const Robot sessions.RobotCode = "robot"

// Chat is a session with a living owner and what it says.
type Chat struct {
	T      *testing.T
	Store  *sql.Store
	Lease  sessions.Lease
	Reader memory.Reader
	Said   int
}

// NewChat opens a session of replica a in which a person said hello and was answered.
func NewChat(t *testing.T, s *sql.Store, conversation sessions.ConversationID, person sessions.UserID, private bool) *Chat {
	t.Helper()
	c := &Chat{T: t, Store: s, Reader: memory.Reader{
		Key: sessions.NewKey(Robot, conversation, ""), Robot: Robot, Conversation: conversation, Private: private,
		Users: []sessions.UserID{person},
	}}
	if _, err := s.Leases.Beat(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	c.Say(person, "hello")
	return c
}

// Say commits a turn in which a person says something and is answered with ok.
func (c *Chat) Say(person sessions.UserID, text string) {
	c.Answer(person, text, sessions.TurnResult{})
}

// Answer commits a turn, in which a person says something and is answered with ok.
func (c *Chat) Answer(person sessions.UserID, text string, t sessions.TurnResult) {
	c.T.Helper()
	c.Said++
	a, err := c.Store.Inbox.Accept(c.T.Context(), "a", c.Reader.Key, sessions.Message{
		RobotCode: Robot, ConversationID: c.Reader.Conversation, ConversationType: sessions.Group,
		ID: sessions.MessageID(fmt.Sprint(c.Reader.Key, c.Said)), SenderID: person, Text: text,
	})
	if err != nil {
		c.T.Fatal(err)
	}
	c.Lease = a.Lease
	t.Taken, t.TakenTokens = []int64{a.EventID}, []int{10}
	t.Events = []sessions.Event{{Role: sessions.RoleAssistant, Content: "ok", Tokens: 1}}
	if _, err := c.Store.Turns.Commit(c.T.Context(), c.Lease, t); err != nil {
		c.T.Fatal(err)
	}
}

// Result commits a turn with a tool result in it and no person's message: the call, the result, the answer.
func (c *Chat) Result(body string) {
	c.T.Helper()
	if _, err := c.Store.Turns.Commit(c.T.Context(), c.Lease, sessions.TurnResult{Events: []sessions.Event{
		{Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{ID: "c", Name: "n", Arguments: "{}"}}, Tokens: 2},
		{Role: sessions.RoleTool, ToolCallID: "c", ToolName: "n", Content: body, Tokens: 100},
		{Role: sessions.RoleAssistant, Content: "ok", Tokens: 1},
	}}); err != nil {
		c.T.Fatal(err)
	}
}

// Save stores facts of a turn.
func (c *Chat) Save(drafts ...memory.Draft) memory.Receipt {
	c.T.Helper()
	r, err := c.Store.Facts.Save(c.T.Context(), c.Lease, drafts)
	if err != nil {
		c.T.Fatal(err)
	}
	return r
}

// Search returns the best ten hits for the words of a query.
func (c *Chat) Search(query string) []memory.Hit {
	c.T.Helper()
	hits, err := c.Store.Search.Search(c.T.Context(), c.Reader, memory.Query{Text: query, Limit: 10})
	if err != nil {
		c.T.Fatal(err)
	}
	return hits
}

// GroupFact is a fact of the chat's group.
func GroupFact(c *Chat, content string) memory.Draft {
	id := memory.GroupID(Robot, c.Reader.Conversation)
	return memory.Draft{Scope: memory.ScopeGroup, ScopeID: id, Kind: memory.KindFact, Content: content, SourceGroup: id}
}

// FactAbout is what a person said of themself in private.
func FactAbout(person sessions.UserID, content string) memory.Draft {
	return memory.Draft{
		Scope: memory.ScopeUser, ScopeID: string(person), Kind: memory.KindProfile, Content: content, SubjectID: person, SaidBy: person,
	}
}

// InGroup is a draft of something that was said in a chat's group.
func InGroup(c *Chat, d memory.Draft) memory.Draft {
	d.SourceGroup = memory.GroupID(Robot, c.Reader.Conversation)
	return d
}

// The person who is forgotten in these tests, and their secret. No other person says any of it.
const (
	ZhangID   = sessions.UserID("staff4711")
	ZhangNick = "张伟伟"
	LiID      = sessions.UserID("staff0815")
)

// OfPerson is a fact about a person, said in private.
func OfPerson(who sessions.UserID, content string) memory.Draft {
	return memory.Draft{Scope: memory.ScopeUser, ScopeID: string(who), Kind: memory.KindProfile, Content: content, SubjectID: who}
}

// Speak is a message of a member in the chat's conversation, accepted and not yet answered.
func (c *Chat) Speak(id string, who sessions.UserID, nick, text string, quote *sessions.Quote) sessions.Accepted {
	c.T.Helper()
	kind := sessions.Group
	if c.Reader.Private {
		kind = sessions.Private
	}
	if quote != nil {
		text = sessions.QuoteLead(quote.Nick, quote.Text) + text
	}
	a := Must[sessions.Accepted](c.T)(c.Store.Inbox.Accept(c.T.Context(), "a", c.Reader.Key, sessions.Message{
		RobotCode: Robot, ConversationID: c.Reader.Conversation, ConversationType: kind, ID: sessions.MessageID(id),
		SenderID: who, StaffID: who, SenderNick: nick, Text: text, Quote: quote, Kind: "text", SentAt: time.Unix(1, 0),
		Webhook: "https://oapi.dingtalk.com/robot/sendBySession?session=" + string(who),
	}))
	c.Lease = a.Lease
	return a
}

// Turn answers messages, with a reply that mentions who asked.
func (c *Chat) Turn(who sessions.UserID, nick, answer string, taken ...sessions.Accepted) {
	c.T.Helper()
	t := sessions.TurnResult{
		Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: answer, Tokens: 3}},
		Reply: &sessions.Reply{Text: answer, Nonce: "n", Target: sessions.Target{
			RobotCode: Robot, ConversationID: c.Reader.Conversation, Webhook: "https://oapi.dingtalk.com/" + string(who),
			StaffID: who, Mentions: []sessions.Mention{{StaffID: who, Nick: nick}},
		}},
	}
	for _, a := range taken {
		t.Taken, t.TakenTokens = append(t.Taken, a.EventID), append(t.TakenTokens, 5)
	}
	done := Must[sessions.Committed](c.T)(c.Store.Turns.Commit(c.T.Context(), c.Lease, t))
	for _, r := range done.Replies {
		if err := c.Store.Outbox.Settle(c.T.Context(), sessions.SendOutcome{Key: c.Reader.Key, ID: r.ID, Sent: true}); err != nil {
			c.T.Fatal(err)
		}
	}
}

// ZhangOut is the id under which a frame without a staff id names Zhang.
const ZhangOut = sessions.UserID("$:LWCP_v1:$zhang")

// Introduce has a message to a robot accepted that has both ids of a sender.
func (c *Chat) Introduce(robot sessions.RobotCode, staff, encrypted sessions.UserID) {
	c.T.Helper()
	c.Said++
	id := sessions.MessageID(fmt.Sprint("intro", c.Said))
	a := Must[sessions.Accepted](c.T)(c.Store.Inbox.Accept(c.T.Context(), "a", sessions.NewKey(robot, "intro", ""), sessions.Message{
		RobotCode: robot, ConversationID: "intro", ConversationType: sessions.Group, ID: id, SenderNick: "N", Kind: "text",
		SenderID: staff, StaffID: staff, EncryptedID: encrypted, Text: "大家好",
	}))
	if !a.New {
		c.T.Fatal("the message was not stored")
	}
}

// Named commits a message of a person under a nick.
func (c *Chat) Named(who sessions.UserID, nick, text string) {
	c.T.Helper()
	c.Said++
	c.Turn(who, nick, "ok", c.Speak("named"+string(rune('a'+c.Said)), who, nick, text, nil))
}

// Reminder is a schedule of a person that was due a minute ago.
func Reminder(origin, text string, by sessions.UserID) sessions.Schedule {
	return sessions.Schedule{
		Kind: sessions.Remind, DueAt: time.Now().Add(-time.Minute).Truncate(time.Second), Spec: "spec", Text: text, Origin: origin,
		Creator: sessions.Message{RobotCode: Robot, ConversationID: "cid", ConversationType: sessions.Group, SenderID: by, SenderNick: ZhangNick},
	}
}

// Firing is the message of a schedule at its time.
func Firing(s sessions.Schedule) sessions.Message {
	m := s.Creator
	m.ID, m.Text = sessions.MessageID(fmt.Sprintf("schedule:%d:%d", s.ID, s.DueAt.Unix())), s.Text
	m.Scheduled = &sessions.Scheduled{ID: s.ID, Kind: s.Kind, DueAt: s.DueAt, Origin: s.Origin}
	return m
}

// Yesterday is the day before the server's, in UTC.
func Yesterday() memory.Day {
	to := time.Now().UTC().Truncate(24 * time.Hour)
	from := to.Add(-24 * time.Hour)
	return memory.Day{Date: from.Format(time.DateOnly), From: from, To: to}
}

// DigestOf is a digest of what a chat's group said yesterday.
func DigestOf(c *Chat, content string) memory.Digest {
	return memory.Digest{
		Date: Yesterday().Date, Scope: memory.ScopeGroup, ScopeID: string(c.Reader.Key), SourceGroup: string(c.Reader.Key),
		Content: content, StartSeq: 1, EndSeq: 12, At: Yesterday().From.Add(9 * time.Hour), Usage: sessions.Usage{Prompt: 40, Completion: 2},
	}
}

// ForgetZhang erases all about Zhang at the robot.
func ForgetZhang(t *testing.T, s *sql.Store) memory.Forgotten {
	t.Helper()
	return Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), memory.Forget{Robot: Robot, Person: ZhangID}))
}

// SummaryOf is a compaction of the events (from, through] into one summary.
func SummaryOf(from, through int64, text string) sessions.Compaction {
	return sessions.Compaction{
		From: from, Through: through,
		Summaries: []sessions.NewSummary{{StartSeq: from + 1, EndSeq: through, Text: text, Tokens: 3}},
	}
}

// SaidBy is a fact of the chat's group with one event of the log as its source.
func SaidBy(c *Chat, content string, by sessions.UserID, seq int64) memory.Draft {
	d := GroupFact(c, content)
	d.SaidBy, d.StartSeq, d.EndSeq = by, seq, seq
	return d
}

// Exchange commits a message of a member and the bot's answer.
func (c *Chat) Exchange(who sessions.UserID, text, answer string) {
	c.T.Helper()
	c.Said++
	c.Turn(who, string(who), answer, c.Speak(fmt.Sprint("tell", c.Said), who, string(who), text, nil))
}

// OpenChat opens a store on a new database, and a chat in it.
func OpenChat(t *testing.T) (*sql.Store, *pgxpool.Pool, *Chat) {
	t.Helper()
	s, pool := Open(t, sqltest.URL(t))
	return s, pool, NewChat(t, s, "cid", "u", false) // 1 and 2
}

// InsertAccepted begins to accept a message in a transaction of its own, which the caller commits.
func InsertAccepted(t *testing.T, pool *pgxpool.Pool, c *Chat, who sessions.UserID, text string) pgx.Tx {
	t.Helper()
	tx := Must[pgx.Tx](t)(pool.Begin(t.Context()))
	message := `{"robot_code": "robot", "conversation_id": "` + string(c.Reader.Conversation) + `", "conversation_type": "1", "sender_id": "` + string(who) + `"}`
	added := dbsqlc.New().MessageAdd(t.Context(), tx, []*dbsqlc.MessageAddParams{{
		SessionKey: c.Reader.Key, MsgID: "slow", Content: text, Message: []byte(message), SenderID: who, SenderNick: ZhangNick, SentAt: time.Now(),
	}})
	if id, err := pg.One(added.QueryRow); err != nil || id == 0 {
		t.Fatalf("the message was stored as %d, %v", id, err)
	}
	return tx
}

// Load stores what people said, in order, after what a chat has.
func (c *Chat) Load(pool *pgxpool.Pool, texts ...string) {
	c.T.Helper()
	events := func(yield func(yardstick.LoadedEvent) bool) {
		for i, text := range texts {
			if !yield(yardstick.LoadedEvent{Key: c.Reader.Key, Event: sessions.Event{
				Seq: int64(i) + 3, Role: sessions.RoleUser, SenderID: "zhang", Content: text, CreatedAt: time.Unix(int64(i)*7200, 0),
			}}) {
				return
			}
		}
	}
	if err := Loader(c.T, pool).LoadEvents(c.T.Context(), events); err != nil {
		c.T.Fatal(err)
	}
}

// Loader fills the database of a pool.
func Loader(t *testing.T, pool *pgxpool.Pool) *yardstick.Loader {
	t.Helper()
	l, err := yardstick.OpenLoader(t.Context(), pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// Known lists what the chat reads, newest first.
func (c *Chat) Known() []string {
	c.T.Helper()
	list, err := c.Store.Facts.Pinned(c.T.Context(), c.Reader, 100)
	if err != nil {
		c.T.Fatal(err)
	}
	var out []string
	for _, m := range list {
		out = append(out, m.Content)
	}
	return out
}

// Replacing is a draft that corrects the fact with a number.
func Replacing(id int64, d memory.Draft) memory.Draft { d.Replaces = id; return d }
