package request

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/calls"
	"ebb/sessions"
)

// Pauses are those of conversations after refusals.
type Pauses interface {
	// NoteRefusal pauses a conversation, and returns for how long.
	NoteRefusal(c sessions.ConversationID) time.Duration
}

// Judge turns answers into what the outbox does with a reply.
type Judge struct {
	secret  Secret
	pauses  Pauses
	limited atomic.Int64
}

// NewJudge returns the judge of an application.
func NewJudge(secret Secret, pauses Pauses) *Judge { return &Judge{secret: secret, pauses: pauses} }

// Limited is the number of refusals for a rate.
func (j *Judge) Limited() int64 { return j.limited.Load() }

// waitFirst is the pause for a refused rate of a call that belongs to no conversation.
const waitFirst = 2 * time.Second

// SendError turns the class of an answer into what the outbox does with the reply: wait, wait for the whole account, try another way,
// or give it up.
func (j *Judge) SendError(to sessions.Target, a Answer, err error) *chat.SendError {
	switch a.Class() {
	case Limited:
		return j.TooMany(to, err)
	case Busy:
		j.limited.Add(1)
		return &chat.SendError{After: WaitBusy, Err: err}
	case Exhausted:
		refused := &calls.RefusedError{Need: calls.Finish, Level: calls.Spent, Until: time.Now().Add(WaitExhausted), After: WaitExhausted}
		return &chat.SendError{After: WaitExhausted, Err: fmt.Errorf("%w: %w", err, refused)}
	case Denied:
		return &chat.SendError{After: WaitOperator, Account: true, Err: err}
	case Banned:
		return &chat.SendError{After: WaitBanned, Account: true, Err: err}
	case BadToken:
		return &chat.SendError{After: WaitToken, Account: true, Err: err}
	case Unsendable:
		return &chat.SendError{Permanent: true, Err: err}
	case RefusedWords:
		return &chat.SendError{Permanent: true, Content: true, Err: err}
	case Unknown:
		return &chat.SendError{Refused: true, Err: err}
	}
	return &chat.SendError{Err: err}
}

// OpenAPI judges an answer of the open API; nil is a success. A success may list an unreachable person.
func (j *Judge) OpenAPI(to sessions.Target, a Answer, doing string) *chat.SendError {
	said, code := a.Code(), a.Body.Str("errcode", "code")
	switch {
	case a.Status >= 500 || MayHaveArrived(a.Status):
		return &chat.SendError{Maybe: MayHaveArrived(a.Status), Err: fmt.Errorf("%s: status %d: %s", doing, a.Status, said)}
	case a.Status == http.StatusOK && !a.Intact:
		return &chat.SendError{Maybe: true, Err: fmt.Errorf("%s: the answer broke off", doing)}
	case a.Status != http.StatusOK || code != "" && code != "0":
		failed := j.SendError(to, a, fmt.Errorf("%s: status %d: %s", doing, a.Status, said))
		failed.Said = j.secret.Redact(j.secret.Words(a), a.Token)
		return failed
	case a.Body.Has("status") && a.Class() == Banned:
		return &chat.SendError{After: WaitBanned, Account: true, Err: fmt.Errorf("%s: %s", doing, said)}
	}
	if a.Lists("invalidStaffIdList", to.StaffID) {
		return &chat.SendError{Permanent: true, Err: fmt.Errorf("%s: DingTalk knows no such person", doing)}
	}
	if a.Lists("flowControlledStaffIdList", to.StaffID) {
		return j.TooMany(to, fmt.Errorf("%s: the person gets too many messages", doing))
	}
	return nil
}

// TooMany pauses the conversation after its refusal. Calls besides messages name none, and pause none.
func (j *Judge) TooMany(to sessions.Target, err error) *chat.SendError {
	j.limited.Add(1)
	if to.ConversationID == "" {
		return &chat.SendError{After: waitFirst, Err: err}
	}
	return &chat.SendError{After: j.pauses.NoteRefusal(to.ConversationID), Err: err}
}

// MayHaveArrived reports whether a message may have arrived with a status. Proxies answer 408, 499, 502 or 504 when an
// answer is lost, and servers may fail after sending. 503 precedes any work.
func MayHaveArrived(status int) bool {
	return status >= 500 && status != http.StatusServiceUnavailable || status == http.StatusRequestTimeout || status == statusClientClosed
}

const statusClientClosed = 499

// Lost is the failure of a request without an answer.
func Lost(doing string, err error) *chat.SendError {
	return &chat.SendError{Maybe: !errors.Is(err, ErrUnsent), Silent: IsSilence(err), Err: fmt.Errorf("%s: %w", doing, err)}
}

// IsSilence reports whether the time for a call ended without an answer. The end of its caller is none.
func IsSilence(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// AsSendError wraps an error that is no [chat.SendError].
func AsSendError(err error) *chat.SendError {
	if failed, ok := errors.AsType[*chat.SendError](err); ok {
		return failed
	}
	return &chat.SendError{Err: err} // the database did not count the call
}
