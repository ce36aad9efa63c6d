package calls

import (
	"fmt"
	"math"
)

// API is a counted API, as metrics and the table api_calls name it.
type API string

// The APIs.
const (
	GroupSend      API = "group_send"
	PrivateSend    API = "private_send"
	CardCreate     API = "card_create"
	CardStream     API = "card_stream"
	CardUpdate     API = "card_update"
	Reaction       API = "reaction"
	ReactionRecall API = "reaction_recall"
	Download       API = "download" // the address of a file
	Upload         API = "upload"
)

// APIs lists the APIs.
var APIs = []API{GroupSend, PrivateSend, CardCreate, CardStream, CardUpdate, Reaction, ReactionRecall, Download, Upload}

// Level is the use that the month's remaining calls permit. A lower level has a higher number.
type Level int

// The levels.
const (
	Streaming  Level = iota // everything
	Unstreamed              // cards of two calls
	Webhook                 // calls without an alternative
	Spent                   // none
)

// String names the level.
func (l Level) String() string {
	switch l {
	case Streaming:
		return "streaming"
	case Unstreamed:
		return "unstreamed"
	case Webhook:
		return "webhook"
	case Spent:
		return "spent"
	}
	return fmt.Sprintf("Level(%d)", int(l))
}

// Need is the purpose of calls, which decides how many must remain after them.
type Need int

// The needs.
const (
	Frame    Need = iota // an update of a card before its last one, a reaction
	Card                 // a new card, with the call that ends it
	Reminder             // a reply to scheduled messages alone
	Finish               // a call without an alternative
)

// At least this number of calls is kept for Finish.
const minReserve = 5

func (n Need) kept(quota int64) int64 {
	reserve := min(quota, max(minReserve, (quota+19)/20))
	switch n {
	case Frame:
		return max(quota/4, reserve)
	case Reminder:
		return min(quota, 2*reserve)
	case Card:
		return reserve
	}
	return 0
}

// Calls of a need must not exceed this number of the month's calls.
func (n Need) bound(quota int64) int64 {
	if quota == 0 {
		return math.MaxInt64
	}
	return quota - n.kept(quota)
}

const cardCalls = 2

// LevelOf is the level after a number of calls of a quota.
func LevelOf(calls, quota int64) Level {
	switch {
	case calls < Frame.bound(quota):
		return Streaming
	case calls <= Card.bound(quota)-cardCalls:
		return Unstreamed
	case calls < Finish.bound(quota):
		return Webhook
	}
	return Spent
}
