package memory

import (
	"context"
	"errors"
	"time"

	"ebb/sessions"
)

// Rights is what people may ask about the data kept of them. The caller decides who may ask. Scopes that a group may
// not read stay hidden there for every asker.
type Rights interface {
	Export

	// Known lists the memories in force that concern an asker, newest first, at most limit after skip. total is 0 if
	// none follows skip. In a private chat they are of the chat, of the team, and about or by the person. In a group
	// every member may read them; an administrator also sees members' statements about themselves.
	Known(ctx context.Context, a Asker, skip, limit int) (list []Known, total int, err error)

	// KnownByID returns one of [Rights.Known], or [sessions.ErrNotFound].
	KnownByID(ctx context.Context, a Asker, id int64) (Known, error)

	// Promote makes a group's memory in force one of the team, with its speaker, place, time and the promoter's name.
	// It supersedes the group's row and the team's memory of the same thing from that group. Other ids are
	// [sessions.ErrNotFound].
	Promote(ctx context.Context, id int64, by sessions.UserID) (Memory, error)

	// People finds people who spoke to a robot, or to any if empty, by staff id or nick, the last seen first. A person
	// with memories only is found by id. With the key of a group only its sessions count.
	People(ctx context.Context, robot sessions.RobotCode, group sessions.Key, name string) ([]Person, error)
}

// Erasures erases memories, messages and people. The caller decides who may ask.
type Erasures interface {
	// ForgetMemory deletes a memory, the values that it corrected, and those that say the same of the same messages.
	// It wipes these messages and their answers, as [sessions.Eraser.Erase] does, and the bot's words that repeat the
	// memory where it was readable. Other facts from the messages stay, as do those consolidated with it. from may be
	// zero. After a failure it returns the work so far; a repetition does the rest. An unknown id is
	// [sessions.ErrNotFound].
	ForgetMemory(ctx context.Context, id int64, from Asking) (Forgotten, error)

	// MessagesBefore lists a person's messages before an event of the session, newest first, also waiting ones and
	// dead letters. Erased ones are left out.
	MessagesBefore(
		ctx context.Context, key sessions.Key, person sessions.UserID, event int64, limit int,
	) ([]sessions.Event, error)

	// ForgetMessage wipes a person's message of the asking session by the event's id, also a waiting one or a dead
	// letter. Its answer, the bot's words that repeat it there, and memories of it alone or repeating it go too. The
	// asking message becomes [ForgetLastDone]. Other ids are [sessions.ErrNotFound].
	ForgetMessage(ctx context.Context, event int64, from Asking) (Forgotten, error)

	// ForgetPerson wipes everything of a person; see [Forget]. After a failure it returns the work so far; a
	// repetition does the rest. Beyond [MaxErasures] a day it fails with [ErrTooOften].
	ForgetPerson(ctx context.Context, f Forget) (Forgotten, error)

	// PreviewForget counts the effects of [Erasures.ForgetPerson].
	PreviewForget(ctx context.Context, f Forget) (Preview, error)
}

// Export lists all that is kept of a person, at one robot or, if robot is empty, at all. One id may be two persons at
// two robots.
type Export interface {
	// FactsOf lists memories about or by the person, superseded ones too, by id after the id after.
	FactsOf(ctx context.Context, robot sessions.RobotCode, person sessions.UserID, after int64, limit int) ([]Memory, error)

	// MessagesOf lists the person's messages in all conversations by arrival, after the id after.
	MessagesOf(ctx context.Context, robot sessions.RobotCode, person sessions.UserID, after int64, limit int) ([]PersonMessage, error)

	// RecordsOf lists other rows with the person's name, by kind and time. Logins and actions on no session belong to no
	// robot and are listed for each.
	RecordsOf(ctx context.Context, robot sessions.RobotCode, person sessions.UserID) ([]Record, error)
}

// RecordKind is a kind of rows with a person's name, besides memories and messages.
type RecordKind string

// The kinds of records, with their Text. An erasure deletes ids, reminders and logins, keeps the audit, and takes the
// name from the others.
const (
	RecordUsage      RecordKind = "usage"      // use of a model on a day: its name
	RecordID         RecordKind = "id"         // an encrypted id
	RecordPromotion  RecordKind = "promotion"  // a memory of another author, shared with the team
	RecordSchedule   RecordKind = "schedule"   // a reminder that the person set: its text
	RecordFile       RecordKind = "file"       // a kept file that the person sent or kept: its name
	RecordCompaction RecordKind = "compaction" // requested compactions and undos of one kind on a day: the trigger
	RecordLogin      RecordKind = "login"      // a login of the console: the name
	RecordAction     RecordKind = "action"     // actions of one kind on a day, in the audit
)

// Record is one row or a sum of rows. Exports have it as JSON.
type Record struct {
	Kind       RecordKind `json:"type"`
	At         time.Time  `json:"at"`
	Text       string     `json:"text"`
	Rows       int        `json:"rows"`
	Prompt     int        `json:"prompt_tokens,omitzero"` // tokens of usage
	Cached     int        `json:"cached_tokens,omitzero"`
	Completion int        `json:"completion_tokens,omitzero"`
	Cost       float64    `json:"cost,omitzero"` // in llm.currency

	// The fields of a schedule are its next or last time, all its times, and whether the model answers it.
	DueAt time.Time             `json:"due_at,omitzero"`
	Spec  string                `json:"spec,omitzero"`
	Way   sessions.ScheduleKind `json:"kind,omitzero"`
}

// Asker is a person who asks for the data known of them, and the place.
type Asker struct {
	Reader Reader
	Person sessions.UserID
	Admin  bool // may manage the group's memory
}

// Known is a memory that concerns an asker.
type Known struct {
	Memory
	Own bool // about the asker, or said by them
}

// Person is a person who spoke.
type Person struct {
	ID   sessions.UserID
	Nick string    // the newest
	Last time.Time // to within an hour
}

// PersonMessage is a message with the conversation where it was said.
type PersonMessage struct {
	Event   sessions.Event
	Title   string // title of the conversation; may be empty
	Private bool
}

// Asking is the turn that asks for an erasure. Its session gets a new term, as in [Forgotten]: other work under the
// old one is lost, but the turn may answer.
type Asking struct {
	Lease sessions.Lease
	Event int64 // id of the message that asks
	// Only restricts the erasure to one person's messages and the bot's; empty for all.
	Only sessions.UserID
	// GroupOnly makes [Erasures.ForgetMemory] fail with [ErrOthersKnow] if the team or a person has a copy.
	GroupOnly bool
	// Language is that of the asking message and of its replacement: zh or en.
	Language string
}

// ErrOthersKnow says that an erasure would delete a memory outside the group. Nothing was erased.
var ErrOthersKnow = errors.New("the memory is known outside its group")

// MaxErasures bounds a person's erasures of themself on a UTC day: each costs others the summaries.
const MaxErasures = 3

// ErrTooOften is returned beyond [MaxErasures].
var ErrTooOften = errors.New("everything about the person was erased often enough today")

// Preview counts the rows that [Erasures.ForgetPerson] would wipe or change.
type Preview struct {
	Messages    int
	Answers     int // the bot's words to them, or repeating theirs
	Facts       int
	DigestLines int
	Summaries   int      // those that lose lines, or are rewritten from the rest
	Groups      []string // titles of the groups where they spoke
	Private     int      // private chats
	Usage       int      // rows of usage that lose the person's name
	Schedules   int      // reminders that they set
	Files       int      // kept files that they sent or kept; those that they only kept lose the name
	Promotions  int      // memories of other authors that lose it
	Compactions int      // compactions and undos that lose it
	IDs         int      // encrypted ids
	Logins      int
	Actions     int // rows of the audit that get [ErasedActor] for the name
}

// ErasedActor begins the actor of actions in the audit by a person who was erased. The rest is the same for all actions of the person.
const ErasedActor = "erased-"

// Forget is an erasure of a person.
//
// It deletes the memories about and by the person in all scopes, former values too, and the private chats and sessions
// that are theirs alone. In groups it wipes their messages, the bot's answers, its words that repeat or name them, and
// quotes by others. Everything made from these goes too: summaries, stored bodies, vectors, digests, replies, work in
// progress. Their reminders are deleted. Rows of wiped messages stay without words and name, as do sums of usage. The
// audit stays, with [ErasedActor] as the actor of their actions.
//
// Other people's words stay, and so do the bot's words to others in private. A nick counts as a whole word in the
// bot's words, unless another person uses it. An identifier counts unless another person said it, or the bot did
// before.
type Forget struct {
	Robot  sessions.RobotCode // empty: every robot
	Person sessions.UserID
	Self   bool // the person asks: their later messages stay
	// Group restricts the erasure to the sessions of a group, by its key: messages, answers, memories from there and reminders. Facts
	// that the team or another conversation has too stay, and so do ids and sums. Empty for all.
	Group sessions.Key
	// From is the turn that asked. Its message is wiped, but pending until the turn's commit.
	From Asking
}

// ForgetDone replaces the message that asked. It is still a command, and names no person.
func ForgetDone(language string) string {
	if language == "zh" {
		return "/忘记我 确认"
	}
	return "/forget me yes"
}

// ForgetLastDone replaces the message that asked for [Erasures.ForgetMessage], in the same transaction: a turn repeated
// after a crash erases no earlier message.
func ForgetLastDone(language string) string {
	if language == "zh" {
		return "/忘记 上一条 done"
	}
	return "/forget last done"
}

// Forgotten counts the rows that were deleted or wiped.
type Forgotten struct {
	Sessions   int // with wiped rows
	Memories   int
	Events     int
	Messages   int // without calls of tools and their results
	Healed     int // summaries that lost lines
	Summaries  int // emptied until they are written again
	Blobs      int
	Replies    int
	Embeddings int
	Lease      sessions.Lease // lease of the session that asked, with its new term
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
