package outbox

import (
	"math/rand/v2"
	"time"

	"ebb/bot/chat"
	"ebb/sessions"
	"ebb/sessions/retry"
)

// attempt is a try to send a batch as one message. Its outcome is stored for each reply of the batch; the rest is for the queue.
type attempt struct {
	outcome sessions.SendOutcome
	more    bool // a part arrived, others follow: the claim of the next part stores that
	split   bool // the joined message was refused: each reply goes alone
	aside   bool // only this message waits
	failed  bool // without a pause by the transport: another reply may pass
}

// done reports whether the message was sent or given up.
func (a attempt) done() bool { return a.outcome.Sent || a.outcome.Failed }

// sendPauses are 1 s to 1 min, and up to a fifth more.
var sendPauses = retry.Pauses{First: 1100 * time.Millisecond, Max: 66 * time.Second, Jitter: 1.0 / 11}

func pauseAfter(attempts int, failed *chat.SendError) time.Duration {
	if failed.After > 0 {
		// The transport knows when there is room again; a longer wait would only delay people.
		return failed.After + time.Duration(rand.Float64()*0.05*float64(failed.After))
	}
	return sendPauses.After(attempts)
}

// maxFailures is the number of other failures after which other replies pass, two to four minutes of an outage. A text
// that makes DingTalk fail each time looks like an outage, and must not silence its conversation for a day.
const maxFailures = 8
