package outbox

import (
	"context"
	"errors"
	"time"

	"ebb/bot/chat"
	"ebb/bot/wording"
	"ebb/sessions"
)

// Files has the bytes of files that replies send.
type Files interface {
	// Body returns the bytes of a file; sessions.ErrNotFound where they are deleted.
	Body(ctx context.Context, key sessions.Key, id int64) ([]byte, error)
	// Delete deletes a file whose reply is settled.
	Delete(ctx context.Context, key sessions.Key, id int64) error
}

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

// isFile reports whether a reply is sent as a file. Another one is a text, or words in place of a file.
func (p *pending) isFile() bool { return p.file != nil && p.way.fault == "" }

// fileState is the way of a reply's file so far. Its zero value: nothing is uploaded.
type fileState struct {
	media    string // the platform's id of the bytes
	uploaded time.Time
	renewed  bool // uploaded again after a refusal of an older id
	fault    fileFault
}

// maxUploads bounds the uploads at once, whose bytes are in memory.
const maxUploads = 2

// uploadFile gives the bytes of a reply's file to the platform before the reply is claimed. So a claim alone says that the message may be
// sent, and a process that died before it has sent nothing. It reports false if the reply has to wait.
func (o *Outbox) uploadFile(q *queue, batch []*pending) bool {
	p := batch[0]
	switch {
	case !p.isFile() || p.way.media != "":
		return true
	case p.part > 0:
		p.way.fault = fileBegun
		return true
	case p.maybe:
		p.way.fault = fileUnknown
		return true
	}
	ctx := p.log.WithContext(o.sender.ctx)
	media, err := o.upload(ctx, p)
	failed, ok := errors.AsType[*chat.SendError](err)
	switch {
	case err == nil:
		p.way.media, p.way.uploaded = media, o.sender.shared.Now()
		return true
	case errors.Is(err, sessions.ErrNotFound):
		p.way.fault = fileGone
		return true
	case ctx.Err() != nil:
		return false
	case !ok:
		failed = &chat.SendError{Err: err}
	}
	p.log.Warn().Err(err).Int64("reply", p.id).Msg("File not uploaded")
	if p.way.fault = faultOf(failed, p.failures+1); p.way.fault != "" {
		return true
	}
	a := attempt{aside: true, failed: true, outcome: sessions.SendOutcome{
		Via: chat.ViaOpenAPI, Error: err.Error(), NextAt: o.sender.shared.Now().Add(pauseAfter(p.failures, failed)),
	}}
	o.sender.recordOutcome(batch, []sessions.Outgoing{{Attempts: p.attempts}}, a.outcome) // lest the storage takes the reply for one that was left
	o.queues.apply(q, batch, a)
	return false
}

func (o *Outbox) upload(ctx context.Context, p *pending) (media string, err error) {
	uploader, ok := o.sender.transport.(chat.Uploader)
	if !ok {
		return "", &chat.SendError{Permanent: true, Err: errNoUploads}
	}
	select {
	case o.uploads <- struct{}{}:
		defer func() { <-o.uploads }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	f := *p.file
	one, stop := context.WithTimeout(ctx, o.sender.shared.CommitTimeout)
	defer stop()
	if f.Body, err = o.sender.files.Body(one, p.key, f.ID); err != nil {
		return "", err
	}
	return uploader.Upload(ctx, p.channel.robot, f)
}

var (
	errNoUploads = errors.New("this transport sends no files")
	errFileGone  = errors.New("the file is deleted")
)

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

// placeFile completes a claimed reply with a file. A reply that may have arrived, or whose file can't be sent, becomes words. They do not depend
// on the reason where they have the content of the file: another process goes on with their next part.
func placeFile(p *pending, out *sessions.Outgoing) {
	f := out.Reply.Target.File
	if f == nil {
		return
	}
	if out.Maybe && p.way.fault == "" {
		p.way.fault = fileUnknown
	}
	sent := *f
	sent.Media, out.Reply.Target.File = p.way.media, &sent
	phrase, ok := fileWords[p.way.fault]
	switch {
	case p.way.fault != "" && f.InText:
		out.Reply.Text, out.Reply.Target.File = wording.Say(wording.FileInText, f.Lang, f.Name)+out.Reply.Text, nil
	case ok:
		out.Reply.Text, out.Reply.Target.File = wording.Say(phrase, f.Lang, f.Name), nil
	}
}

// renewAfter is the age from which an upload may be the cause of a refusal.
const renewAfter = time.Minute

// judgeFile completes an attempt to send a file that failed. The next one sends words where the file can't be sent, or may have arrived.
func (s *sender) judgeFile(p *pending, a attempt, failed *chat.SendError) attempt {
	now := s.shared.Now()
	a.outcome.Maybe, a.outcome.NextAt = failed.Maybe, now
	if (failed.Permanent || failed.Refused) && !p.way.renewed && now.Sub(p.way.uploaded) > renewAfter {
		p.way.renewed, p.way.media = true, ""
		return a
	}
	if p.way.fault = faultOf(failed, p.failures+1); p.way.fault == "" {
		a.aside, a.failed, a.outcome.NextAt = true, true, now.Add(pauseAfter(p.failures, failed))
	}
	return a
}

// dropFile deletes the bytes of a settled reply. Those that stay are deleted by retention.
func (s *sender) dropFile(p *pending) {
	if p.file == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(s.ctx), s.shared.CommitTimeout)
	defer stop()
	if err := s.files.Delete(ctx, p.key, p.file.ID); err != nil {
		p.log.Warn().Err(err).Int64("reply", p.id).Msg("File of a settled reply not deleted")
	}
}
