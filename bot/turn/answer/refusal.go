package answer

import (
	"cmp"
	"errors"

	"ebb/sessions"
	"ebb/sessions/llm"
)

// refusals is the part of a question about a provider that permanently refuses its requests.
type refusals struct {
	made      int                 // requests of the question, one for each model asked
	most      int                 // their bound; 0: none, nothing was refused
	accepts   string              // the model that accepted what the first one refused; empty: none
	passed    *llm.CallError      // that refusal
	cause     *llm.CallError      // the refusal for which the question is asked alone
	suspicion *sessions.Suspicion // rows of the refused request; nil: none
	guilty    *sessions.Refusal   // the question is at fault; nil: it is not known to be
}

// maxRequests bounds the requests of a question with a refusal, the refused one included. Later refusals have at least one more.
const maxRequests = 3

// note counts a call. A view of half the size that is accepted shows that the request before was too large, and nothing was refused.
func (f *refusals) note(resp llm.Response, err error, half bool) {
	f.made += max(1, len(resp.Parts))
	refused := refusedBy(resp, err)
	switch {
	case err == nil && refused != nil:
		f.accepts, f.passed = resp.Model, refused
	case err == nil && half && f.suspicion == nil:
		f.most = 0
	case refused != nil && f.most == 0:
		f.most = max(maxRequests, f.made+1)
	}
}

// left is the number of further requests; negative for no bound.
func (f *refusals) left() int {
	if f.most == 0 {
		return -1
	}
	return max(0, f.most-f.made)
}

// allow permits n further requests after a refusal.
func (f *refusals) allow(n int) {
	if f.most > 0 {
		f.most = max(f.most, f.made+n)
	}
}

// bound is that of the next call: after a refusal a request goes to one model once.
func (f *refusals) bound() int {
	return min(1, f.most)
}

// refusedBy returns the refusal of the model that was asked first, whatever the others said; nil: it refused nothing.
func refusedBy(resp llm.Response, err error) *llm.CallError {
	if len(resp.Parts) > 0 {
		if first := resp.Parts[0].Err; first != nil && first.RequestFault() {
			return first
		}
		return nil
	}
	if e, ok := errors.AsType[*llm.CallError](err); ok && e.RequestFault() {
		return e
	}
	return nil
}

// suspected are the rows that results of tools leave out.
func (f *refusals) suspected(q question) *sessions.Suspicion {
	old := q.made.View.Session.Suspicion
	return cmp.Or(f.suspicion.Join(old), old)
}

// marks are what a commit keeps of the refusals.
func (f *refusals) marks(v sessions.View) (taken []sessions.Withheld, suspicion *sessions.Suspicion) {
	if f.guilty != nil {
		taken = []sessions.Withheld{{v.Reads: *f.guilty}}
	}
	return taken, f.suspicion.Join(v.Session.Suspicion)
}
