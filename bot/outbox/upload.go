package outbox

import (
	"context"
	"errors"
	"time"

	"ebb/bot/chat"
	"ebb/bot/parts"
	"ebb/sessions"
)

// Files has the bytes of files that replies send.
type Files interface {
	// Body returns the bytes of a file; sessions.ErrNotFound where they are deleted.
	Body(ctx context.Context, key sessions.Key, id int64) ([]byte, error)
	// Delete deletes a file whose reply is settled.
	Delete(ctx context.Context, key sessions.Key, id int64) error
}

// maxUploads bounds the uploads at once, whose bytes are in memory.
const maxUploads = 2

// uploads give files of replies to the platform.
type uploads struct {
	shared    *parts.Shared
	transport chat.Transport
	files     Files
	slots     chan struct{} // semaphore
}

// prepare gives the bytes of a reply's file to the platform before the reply is claimed. So a claim alone says that the message may be
// sent, and a process that died before it has sent nothing. It reports false if the reply has to wait: after an attempt that failed, or
// with a nil attempt for the next process.
func (u uploads) prepare(ctx context.Context, p *pending) (ready bool, failure *attempt) {
	switch {
	case !p.isFile() || p.way.media != "":
		return true, nil
	case p.part > 0:
		p.way.fault = fileBegun
		return true, nil
	case p.maybe:
		p.way.fault = fileUnknown
		return true, nil
	}
	ctx = p.log.WithContext(ctx)
	media, err := u.upload(ctx, p)
	failed, ok := errors.AsType[*chat.SendError](err)
	switch {
	case err == nil:
		p.way.media, p.way.uploaded = media, u.shared.Now()
		return true, nil
	case errors.Is(err, sessions.ErrNotFound):
		p.way.fault = fileGone
		return true, nil
	case ctx.Err() != nil:
		return false, nil
	case !ok:
		failed = &chat.SendError{Err: err}
	}
	p.log.Warn().Err(err).Int64("reply", p.id).Msg("File not uploaded")
	if p.way.fault = faultOf(failed, p.failures+1); p.way.fault != "" {
		return true, nil
	}
	return false, &attempt{aside: true, failed: true, outcome: sessions.SendOutcome{
		Via: chat.ViaOpenAPI, Error: err.Error(), NextAt: u.shared.Now().Add(pauseAfter(p.failures, failed)),
	}}
}

func (u uploads) upload(ctx context.Context, p *pending) (media string, err error) {
	uploader, ok := u.transport.(chat.Uploader)
	if !ok {
		return "", &chat.SendError{Permanent: true, Err: errNoUploads}
	}
	select {
	case u.slots <- struct{}{}:
		defer func() { <-u.slots }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	f := *p.file
	one, stop := context.WithTimeout(ctx, u.shared.CommitTimeout)
	defer stop()
	if f.Body, err = u.files.Body(one, p.key, f.ID); err != nil {
		return "", err
	}
	return uploader.Upload(ctx, p.channel.robot, f)
}

var (
	errNoUploads = errors.New("this transport sends no files")
	errFileGone  = errors.New("the file is deleted")
)

// renewAfter is the age from which an upload may be the cause of a refusal.
const renewAfter = time.Minute

// judgeFile completes an attempt to send a file that failed. The next one sends words where the file can't be sent, or may have arrived.
func judgeFile(p *pending, a attempt, failed *chat.SendError, now time.Time) attempt {
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

// delete removes the bytes of a settled reply. Those that stay are deleted by retention.
func (u uploads) delete(ctx context.Context, p *pending) {
	if p.file == nil {
		return
	}
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), u.shared.CommitTimeout)
	defer stop()
	if err := u.files.Delete(one, p.key, p.file.ID); err != nil {
		p.log.Warn().Err(err).Int64("reply", p.id).Msg("File of a settled reply not deleted")
	}
}
