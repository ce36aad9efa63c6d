package outbox

import (
	"time"

	"ebb/bot/chat"
	"ebb/bot/wording"
	"ebb/sessions"
)

// fileFault is the reason why words are sent in place of a file.
type fileFault string

const (
	fileNoCalls fileFault = "no_calls" // the month has no calls left for it
	fileRefused fileFault = "refused"  // by the platform, or after several failures
	fileUnknown fileFault = "unknown"  // it may have arrived. The platform has no key that would recognize a second message.
	fileGone    fileFault = "gone"     // deleted meanwhile
	fileBegun   fileFault = "begun"    // parts of the text in its place have arrived
)

var fileWords = map[fileFault]wording.Phrase{fileNoCalls: wording.FileNoCalls, fileRefused: wording.FileNotSent, fileUnknown: wording.FileUnknown}

// fileState is the way of a reply's file so far. Its zero value: nothing is uploaded.
type fileState struct {
	media    string // the platform's id of the bytes
	uploaded time.Time
	renewed  bool // uploaded again after a refusal of an older id
	fault    fileFault
}

// faultOf is the reason to send words in place of a file after a failure; empty: it is tried again.
func faultOf(failed *chat.SendError, tries int) fileFault {
	switch {
	case failed.Maybe:
		return fileUnknown
	case failed.Aside && !failed.Account:
		return fileNoCalls
	case failed.Permanent, failed.Refused, failed.Account, tries >= maxFailures:
		return fileRefused
	}
	return ""
}

// placeIn completes a claimed reply with the file. A reply that may have arrived, or whose file can't be sent, becomes words. They do not depend
// on the reason where they have the content of the file: another process goes on with their next part.
func (w *fileState) placeIn(out *sessions.Outgoing) {
	f := out.Reply.Target.File
	if f == nil {
		return
	}
	if out.Maybe && w.fault == "" {
		w.fault = fileUnknown
	}
	sent := *f
	sent.Media, out.Reply.Target.File = w.media, &sent
	phrase, ok := fileWords[w.fault]
	switch {
	case w.fault != "" && f.InText:
		out.Reply.Text, out.Reply.Target.File = wording.Say(wording.FileInText, f.Lang, f.Name)+out.Reply.Text, nil
	case ok:
		out.Reply.Text, out.Reply.Target.File = wording.Say(phrase, f.Lang, f.Name), nil
	}
}
