package sessions

import (
	"context"
	"time"
)

// Limits bound the turns and tokens of people, groups and the installation. 0: no bound.
//
// The turns of a group and the tokens of the installation are shared: a person beyond a fifth of them gets what the others' recent
// use leaves, see [Allowance]. The recent turns of a group are those of this window and of the one before, if that ended within
// [RecentTurns]. The recent tokens are the others' largest day of the last [RecentDays].
type Limits struct {
	PersonTurns, GroupTurns int // in a minute from the first turn
	PersonTokens, Tokens    int // in a UTC day; Tokens is of the whole installation, upkeep included
	// UnidentifiedTurns bounds an asker without a staff id in groups, in an hour from the first turn.
	UnidentifiedTurns int
	// ScheduledTurns bounds the scheduled questions of a person, and Compactions the compactions of a conversation by hand. Both
	// are of a UTC day.
	ScheduledTurns, Compactions int
}

// RecentDays is the number of days, with the current one, in which a use of tokens is recent.
const RecentDays = 8

// RecentTurns is how long after its end a window of a group's turns is recent.
const RecentTurns = 10 * time.Minute

// Allowance is a person's part of a bound of which others recently used some: at least a fifth, and at least a fifth is left.
func Allowance(bound, others int) int {
	fifth := (bound + 4) / 5
	if others <= 0 {
		return bound
	}
	return max(fifth, bound-max(fifth, others))
}

// Limit names one of the [Limits]; it is a label of metrics.
type Limit string

// The limits.
const (
	PersonTurns  Limit = "person_turns"
	GroupTurns   Limit = "group_turns"
	PersonTokens Limit = "person_tokens"
	AllTokens    Limit = "tokens"

	UnidentifiedTurns Limit = "unidentified_turns"
	ScheduledTurns    Limit = "scheduled_turns"
	Compactions       Limit = "compactions"

	// A person's part of GroupTurns and of AllTokens.
	GroupShare  Limit = "group_share"
	TokensShare Limit = "tokens_share"
)

// AllLimits are the limits in the order of their values above.
var AllLimits = []Limit{PersonTurns, GroupTurns, PersonTokens, AllTokens, UnidentifiedTurns, ScheduledTurns, Compactions, GroupShare, TokensShare}

// Work is what a turn does, where limits count it.
type Work string

// The kinds of work.
const (
	Answering  Work = "answer"     // a question of people
	Asking     Work = "scheduled"  // a scheduled question
	Commanded  Work = "command"    // a command that costs
	Compacting Work = "compaction" // a command that compacts
)

// Askers are the people of a turn. Group is empty in a private chat.
type Askers struct {
	Robot  RobotCode
	Group  ConversationID
	People []UserID // without duplicates
	// Unidentified are those of People without a staff id, in a group: people outside the organization, and other
	// bots.
	Unidentified []UserID
	Work         Work // empty: Answering
	// Key is the session of the turn, and Asked its messages.
	Key   Key
	Asked []AskedMessage
}

// AskedMessage is a message of a turn, by its event.
type AskedMessage struct {
	Event int64
	By    UserID
}

// Reached is a limit that stops a turn.
type Reached struct {
	Limit  Limit
	Person UserID // empty: all askers
	Until  time.Time
}

// LimitUse is the use of one window.
type LimitUse struct {
	Count int
	Until time.Time // zero: no window is running
}

// Used is current use. It is counted only while its limit is configured, except Tokens.
type Used struct {
	PersonTurns, GroupTurns, PersonTokens, Tokens, UnidentifiedTurns, ScheduledTurns, Compactions LimitUse
	// GroupPart is the part of GroupTurns that the person used, and GroupOthers the others' recent use, see [Allowance].
	GroupPart   LimitUse
	GroupOthers int
}

// NoticesPerMinute bounds the notices in a group, in a minute from the first: a fifth of the replies that DingTalk takes. The rest
// is for answers.
const NoticesPerMinute = 4

// Notice is given once in a window: about a limit of a subject, or a refusal. The subject is a person or a
// conversation.
type Notice struct {
	Kind    string
	Robot   RobotCode
	Subject string
	Group   ConversationID // the group that reads it; empty: a private chat
	Until   time.Time      // zero: Lasts from now on
	Lasts   time.Duration
	// By is the message of the notice, which claims it again after a crash; empty: no message does.
	By MessageID
}

// Limiter counts turns, tokens and notices for all replicas.
type Limiter interface {
	// Admit counts one turn for each asker without a reached limit, and one for the group if there is such an asker. A
	// person without a limit in the result is admitted, unless one is of all askers. The pending messages of admitted
	// people keep it as [Event.Admitted].
	Admit(ctx context.Context, limits Limits, a Askers) ([]Reached, error)

	// SpendTokens adds a turn's tokens to its askers' days.
	SpendTokens(ctx context.Context, robot RobotCode, spent map[UserID]int) error

	// Notify claims the notice, and reports whether it is due. One beyond [NoticesPerMinute] is not, and stays unclaimed.
	Notify(ctx context.Context, n Notice) (bool, error)

	// Used reads the use of the first asker, of the session, of the group and of the installation.
	Used(ctx context.Context, a Askers) (Used, error)

	// OthersTokens returns the others' recent use of tokens, see [Allowance].
	OthersTokens(ctx context.Context, robot RobotCode, person UserID) (int, error)
}

// Ledger counts costs.
type Ledger interface {
	// Charge adds a spending that no other write carries to the session's usage and to the day's. That of a missing session counts
	// for the day under [Key.Gone].
	Charge(ctx context.Context, key Key, one Spending) error

	// Spent lists the spendings of a session since the UTC day of a time, one of each kind, by name.
	Spent(ctx context.Context, key Key, since time.Time) ([]Spending, error)
}

// SharesOf divides the tokens of a turn among its askers: each has those of the own words, and an equal part of the rest.
func SharesOf(tokens int, own []int) []int {
	words := 0
	for _, n := range own {
		words += n
	}
	parts := Shares(max(0, tokens-words), len(own))
	for i, n := range own {
		if words > tokens { // a provider reported less than our count
			n = n * tokens / words
		}
		parts[i] += n
	}
	if len(parts) > 0 {
		for _, n := range parts {
			tokens -= n
		}
		parts[0] += max(0, tokens) // rounded down
	}
	return parts
}

// Shares divides the tokens of a turn equally among its askers.
func Shares(tokens, people int) []int {
	parts := make([]int, people)
	for i := range parts {
		parts[i] = tokens / people
		if i < tokens%people {
			parts[i]++
		}
	}
	return parts
}
