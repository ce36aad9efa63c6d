package sessions

import "time"

// CallMonth is a month's counted calls to the chat platform's open API, over all replicas.
type CallMonth struct {
	Calls          int64     // all APIs together
	Level          int       // lowest level that was reported, see ebb/bot/dingtalk/calls; 0 is the highest
	ExhaustedUntil time.Time // the platform refuses calls until then; zero if not
	First          bool      // this caller began the month
	LowBefore      bool      // the month before reached a lower level or was exhausted, when First
}
