package memory

import (
	"context"
	"errors"
	"time"

	"ebb/sessions"
)

// Rights is what a person may ask about the data kept of them: read it, export it, have it forgotten. The caller
// decides who may ask. Scopes that a group may not read stay hidden there for every asker.
type Rights interface {
	Export

	// Known lists the memories in force that concern an asker, newest first, at most limit after skip. It also returns
	// their total, or 0 if none follows skip. In a private chat these are the memories of the chat, of the team, about
	// the person and said by the person anywhere. In a group they are those that every member may read; an
	// administrator also sees statements of its members about themselves.
	Known(ctx context.Context, a Asker, skip, limit int) (list []Known, total int, err error)

	// KnownByID returns one memory of [Rights.Known], or [sessions.ErrNotFound] if it is not among them, even if it
	// exists.
	KnownByID(ctx context.Context, a Asker, id int64) (Known, error)

	// ForgetMemory deletes a memory, the values that it corrected, and those that say the same of the same messages. It
	// wipes the messages that said it with their answers, as [sessions.Eraser.Erase] does, and the bot's own words that
	// repeat it wherever it was readable. Other facts from the same messages stay, and so do those that were
	// consolidated with it. from is the turn that asked; the zero value for none. After a failure it returns the work
	// done so far, and a repetition does the rest. It returns [sessions.ErrNotFound] if there is no such memory.
	ForgetMemory(ctx context.Context, id int64, from Asking) (Forgotten, error)

	// MessagesBefore lists a person's messages of a session that were sent before an event, newest first, at most limit:
	// those that wait and dead letters too, erased ones not.
	MessagesBefore(
		ctx context.Context, key sessions.Key, person sessions.UserID, event int64, limit int,
	) ([]sessions.Event, error)

	// ForgetMessage wipes one message of the asking session, by the event's id, with its answer and the bot's words
	// that repeat it there. It deletes memories that were drawn from it alone or repeat it. A waiting message or dead
	// letter is wiped as well. The message that asks becomes [ForgetLastDone]. It returns [sessions.ErrNotFound] if no
	// person said such a message.
	ForgetMessage(ctx context.Context, event int64, from Asking) (Forgotten, error)

	// Promote makes a group's memory one of the team, and returns the new one. It keeps the speaker, place and time,
	// and names the promoter. It supersedes the group's own row and the team's memory of the same thing from that
	// group. It returns [sessions.ErrNotFound] if no group's memory in force has that id.
	Promote(ctx context.Context, id int64, by sessions.UserID) (Memory, error)

	// People finds people who spoke to a robot, or to any if robot is empty, by staff id or by nick: the last seen
	// first. A person of whom only memories are left is found by id.
	People(ctx context.Context, robot sessions.RobotCode, name string) ([]Person, error)

	// ForgetPerson wipes everything of a person; see [Forget]. After a failure it returns the work done so far, and a
	// repetition does the rest. It returns [ErrTooOften] if the person asked for it [MaxErasures] times today.
	ForgetPerson(ctx context.Context, f Forget) (Forgotten, error)

	// PreviewForget counts what [Rights.ForgetPerson] would wipe, and changes nothing.
	PreviewForget(ctx context.Context, f Forget) (Preview, error)
}

// Export lists everything that is kept of a person.
type Export interface {
	// FactsOf lists the memories about a person and those that the person said, superseded ones too. They are ordered
	// by id, at most limit after the id after, of one robot or of any if robot is empty. The same id at another robot
	// may be another person.
	FactsOf(ctx context.Context, robot sessions.RobotCode, person sessions.UserID, after int64, limit int) ([]Memory, error)

	// MessagesOf lists a person's messages in every conversation of a robot, or of all if robot is empty. They are in
	// order of arrival, at most limit with an id above after.
	MessagesOf(ctx context.Context, robot sessions.RobotCode, person sessions.UserID, after int64, limit int) ([]PersonMessage, error)

	// RecordsOf lists the other rows that name a person, by kind and time. Logins belong to no robot, and each robot finds them, as
	// an erasure does. Actions belong to none either, and only an empty robot finds them.
	RecordsOf(ctx context.Context, robot sessions.RobotCode, person sessions.UserID) ([]Record, error)
}

// RecordKind is a kind of rows that name a person, besides memories and messages.
type RecordKind string

// The kinds of records. An erasure deletes ids and logins, takes the name from usage, promotions and compactions, and leaves the audit.
const (
	RecordUsage      RecordKind = "usage"      // use of models on a day: Text is the model
	RecordID         RecordKind = "id"         // an encrypted id of the person: Text
	RecordPromotion  RecordKind = "promotion"  // a memory of another author that the person shared with the team: Text
	RecordCompaction RecordKind = "compaction" // compactions and undos that the person asked for, of one kind on a day: Text is the trigger
	RecordLogin      RecordKind = "login"      // a login of the console: Text is the name
	RecordAction     RecordKind = "action"     // actions of one kind on a day, in the audit: Text
)

// Record is a row that names a person, or a sum of such rows. Exports have it as JSON.
type Record struct {
	Kind       RecordKind `json:"type"`
	At         time.Time  `json:"at"`
	Text       string     `json:"text"`
	Rows       int        `json:"rows"`
	Prompt     int        `json:"prompt_tokens,omitzero"` // tokens of usage
	Cached     int        `json:"cached_tokens,omitzero"`
	Completion int        `json:"completion_tokens,omitzero"`
	Cost       float64    `json:"cost,omitzero"` // in the unit of the configured prices
}

// Asker is a person who asks for the data known of them, and the place.
type Asker struct {
	Reader Reader
	Person sessions.UserID
	Admin  bool // an administrator, who manages a group's memory
}

// Known is a memory that concerns an asker.
type Known struct {
	Memory
	Own bool // about the asker, or said by them
}

// Person is a person who spoke.
type Person struct {
	ID       sessions.UserID
	Nick     string // the newest
	Messages int
	Last     time.Time
}

// PersonMessage is one message of a person, with the conversation where it was said.
type PersonMessage struct {
	Event   sessions.Event
	Title   string // title of the conversation; may be empty
	Private bool
}

// Asking is the turn that asks for an erasure. Its session's lease goes on with another term, which [Forgotten] has.
// Other work under the old term can't be written any more, but the turn may answer.
type Asking struct {
	Lease sessions.Lease
	Event int64 // id of the message that asks
	// Only restricts the erasure to one person's messages; empty for everybody's. The bot's messages are wiped for
	// every asker.
	Only sessions.UserID
	// GroupOnly restricts [Rights.ForgetMemory] to memories that no one outside a group has: it returns [ErrOthersKnow] for one with a
	// copy of the team or of a person.
	GroupOnly bool
	// Language is that of the message that asks, zh or en, and of the text that replaces it.
	Language string
}

// ErrOthersKnow says that the erasure of a memory of a group would delete one of the team or of a person. Nothing was erased then.
var ErrOthersKnow = errors.New("the memory is known outside its group")

// MaxErasures is how often a person may have themself forgotten on one day, of UTC: it costs others the summaries.
const MaxErasures = 3

// ErrTooOften is returned if a person asks for it once more.
var ErrTooOften = errors.New("everything about the person was erased often enough today")

// Preview counts what forgetting a person would wipe.
type Preview struct {
	Messages    int // that they said
	Answers     int // answers of the bot to them, or repeating them
	Facts       int
	DigestLines int
	Summaries   int      // summaries of views that lose lines, or are rewritten from the rest
	Groups      []string // titles of the groups where they spoke
	Private     int      // private chats
	Usage       int      // rows of usage that lose the person's name
	Promotions  int      // memories of other authors that lose it
	Compactions int      // compactions and undos that lose it
	IDs         int      // encrypted ids
	Logins      int      // logins of the console
}

// Forget says whom to forget.
//
// An erasure deletes the memories about the person and by the person, former values too, in all scopes. It deletes
// their private chats and the sessions that are theirs alone. In groups it wipes their messages, the bot's answers to
// them, its words that repeat or name them, and quotes by others. It also wipes everything made from these: summaries,
// stored bodies, vectors, digests, replies, work in progress. The rows of wiped messages stay, without words and
// without a name, and so do the sums of usage. The audit stays with the names of those who acted.
//
// Other people's words stay, and so do the bot's words to others in private. A nick counts as a whole word in the bot's
// own words, unless another person uses it. An identifier counts unless another person said it, or the bot did before.
type Forget struct {
	Robot  sessions.RobotCode // robot of the conversations; empty: every robot
	Person sessions.UserID
	Self   bool // the person asks: their later messages stay
	// From is the turn that asked; its message is wiped too, but stays pending for the turn's commit.
	From Asking
}

// ForgetDone replaces the message that asked for a person to be forgotten. It is still a command, and names no person.
func ForgetDone(language string) string {
	if language == "zh" {
		return "/忘记我 确认"
	}
	return "/forget me yes"
}

// ForgetLastDone replaces the text of the message that asked for [Rights.ForgetMessage], in the same transaction. A turn
// that is repeated after a crash finds it, and erases no earlier message.
func ForgetLastDone(language string) string {
	if language == "zh" {
		return "/忘记 上一条 done"
	}
	return "/forget last done"
}

// Forgotten counts the rows that were deleted or wiped.
type Forgotten struct {
	Sessions   int // that had something
	Memories   int
	Events     int
	Messages   int // messages of people and the bot, without calls of tools and their results
	Healed     int // summaries that lost lines
	Summaries  int // emptied until they are written again
	Blobs      int
	Replies    int
	Embeddings int
	Lease      sessions.Lease // lease of the session that asked, as it stands now
}

// Add adds the counts of an erasure in one session.
func (f *Forgotten) Add(e sessions.Erased) {
	f.Memories += e.Memories
	f.Events += e.Events
	f.Healed += e.Healed
	f.Summaries += e.Summaries
	f.Blobs += e.Blobs
	f.Replies += e.Replies
}
