package memory

import (
	"context"
	"errors"
	"time"

	"ebb/sessions"
)

// Rights is what people may ask about what is kept of them: to see it, to take it with them, and to have it forgotten.
// Who may ask is for the caller to decide; what a group may not read stays unread there whoever asks.
type Rights interface {
	Export

	// Known lists the memories in force that concern an asker, newest first, at most limit behind the first skip of them,
	// and says how many there are in all (0 where nothing stands behind skip). In a private chat these are the chat's and
	// the team's, those about the person and those that the person said, wherever that was; in a group only what everybody
	// in it may read, and for an administrator what its members told there of themselves.
	Known(ctx context.Context, a Asker, skip, limit int) (list []Known, total int, err error)

	// KnownByID returns one memory out of [Rights.Known]: [sessions.ErrNotFound] where it is not in there, whether it is
	// at all or not.
	KnownByID(ctx context.Context, a Asker, id int64) (Known, error)

	// ForgetMemory deletes a memory with the values that it corrected and with those that say the same of the same
	// messages, and wipes the messages that said it with their answers, as [sessions.Eraser.Erase] does, and what of the
	// bot's own repeats it wherever it could be read. Other facts from the same messages stay, and so do those that were
	// consolidated with it. from is the turn that asked; the zero value for none. What it did stands where it fails, and
	// doing it again does the rest. [sessions.ErrNotFound] where there is no such memory.
	ForgetMemory(ctx context.Context, id int64, from Asking) (Forgotten, error)

	// MessagesBefore lists a person's messages of a session that were sent before an event, newest first, at most limit:
	// those that wait and dead letters too, erased ones not.
	MessagesBefore(
		ctx context.Context, key sessions.Key, person sessions.UserID, event int64, limit int,
	) ([]sessions.Event, error)

	// ForgetMessage wipes one message of the session that asks, by the event's id, with its answer, what of the bot's own
	// repeats it there, and the memories that were drawn from it alone or repeat it. One that waits or was set aside is
	// wiped as well. The message that asks becomes [ForgetLastDone]. [sessions.ErrNotFound] where a person said no such
	// message.
	ForgetMessage(ctx context.Context, event int64, from Asking) (Forgotten, error)

	// Promote makes a group's memory one of the team, and returns that: it keeps who said it, where and when, and says
	// who promoted it. The group's own row is superseded by it, and so is what the team had from that group of the same
	// thing. [sessions.ErrNotFound] where no memory of a group is in force by that id.
	Promote(ctx context.Context, id int64, by sessions.UserID) (Memory, error)

	// People finds who spoke to a robot, or to any where it is empty, by staff id or by nick: the last seen first.
	People(ctx context.Context, robot sessions.RobotCode, name string) ([]Person, error)

	// ForgetPerson wipes everything of a person; see [Forget]. What it did stands where it fails, and doing it again does
	// the rest. [ErrTooOften] where the person asked for it [MaxErasures] times today.
	ForgetPerson(ctx context.Context, f Forget) (Forgotten, error)

	// PreviewForget counts what [Rights.ForgetPerson] would wipe, and changes nothing.
	PreviewForget(ctx context.Context, f Forget) (Preview, error)
}

// Export lists everything that is kept of a person.
type Export interface {
	// FactsOf lists the memories about a person and those that the person said, superseded ones too, oldest first, at
	// most limit of those with an id above after: what one robot was told, or any where it is empty. Another robot's
	// person of the same id may be somebody else.
	FactsOf(ctx context.Context, robot sessions.RobotCode, person sessions.UserID, after int64, limit int) ([]Memory, error)

	// MessagesOf lists what a person said, in every conversation of a robot, or of all where it is empty, in order of
	// arrival: at most limit messages with an id above after.
	MessagesOf(ctx context.Context, robot sessions.RobotCode, person sessions.UserID, after int64, limit int) ([]PersonMessage, error)
}

// Asker is a person who asks what is known, and where.
type Asker struct {
	Reader Reader
	Person sessions.UserID
	Admin  bool // an administrator, who looks after what a group is told
}

// Known is a memory that concerns an asker.
type Known struct {
	Memory
	Own bool // about the asker, or said by them
}

// Person is somebody who spoke.
type Person struct {
	ID       sessions.UserID
	Nick     string // the newest
	Messages int
	Last     time.Time
}

// PersonMessage is one message of a person, with the conversation where it was said.
type PersonMessage struct {
	Event   sessions.Event
	Title   string // of the conversation; may be empty
	Private bool
}

// Asking is the turn that asks for something to be forgotten. Its session's lease goes on with another term, which
// [Forgotten] has: whatever else is under way by the old one must not be written any more, but the turn may answer.
type Asking struct {
	Lease sessions.Lease
	Event int64 // id of the message that asks
	// Only is whose messages may be wiped, out of what people said; empty for everybody's. What the bot said goes whoever
	// asks.
	Only sessions.UserID
	// Language is that of the message that asks, zh or en, and so of what replaces its text.
	Language string
}

// MaxErasures is how often a person may have themself forgotten on one day, of UTC: it costs others the summaries.
const MaxErasures = 3

// ErrTooOften is returned where a person asks for it once more.
var ErrTooOften = errors.New("everything about the person was erased often enough today")

// Preview counts what forgetting a person would wipe.
type Preview struct {
	Messages    int // that they said
	Answers     int // of the bot: to them, or repeating them
	Facts       int
	DigestLines int
	Summaries   int      // of views: that lose lines, or are written again from what is left
	Groups      []string // titles of the groups where they spoke
	Private     int      // private chats
}

// Forget says whom to forget.
//
// It deletes the memories about the person and those that they said, former values too, in all scopes; their private
// chats and the sessions that are theirs alone; and in groups where they spoke it wipes their messages, what the bot did
// and said to answer them, to repeat them or to name them, what others quote of them, and everything that was made from
// these: summaries, stored bodies, vectors, digests, replies, work in hand. The rows of wiped messages stay, without words
// and without a name.
//
// What others said stays, whatever it says, and so does what the bot told others in private. A nick counts as a whole word
// in the bot's own words, where nobody else goes by it; an identifier where nobody else said it, and the bot did not before.
type Forget struct {
	Robot  sessions.RobotCode // whose conversations; empty: those of every robot
	Person sessions.UserID
	Self   bool // the person asks: what they say after that is another matter
	// From is the turn that asked; its message is wiped too, but stays pending for the turn's commit.
	From Asking
}

// ForgetDone is what is left of the message that asked for a person to be forgotten: a command still, that names nobody.
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
	Messages   int // of the events: what people and the bot said, calls of tools and their results aside
	Healed     int // summaries that lost lines
	Summaries  int // emptied until they are written again
	Blobs      int
	Replies    int
	Embeddings int
	Lease      sessions.Lease // of the session that asked, as it stands now
}

// Add counts what an erasure in one session did.
func (f *Forgotten) Add(e sessions.Erased) {
	f.Memories += e.Memories
	f.Events += e.Events
	f.Healed += e.Healed
	f.Summaries += e.Summaries
	f.Blobs += e.Blobs
	f.Replies += e.Replies
}
