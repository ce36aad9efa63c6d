package knowledge

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/text/unicode/norm"

	"ebb/bot/wording"
	"ebb/memory/text"
	"ebb/sessions"
)

// Store has the kept files. See package sql/files.
type Store interface {
	// Files lists the kept files of a session, the newest first.
	Files(ctx context.Context, key sessions.Key) ([]sessions.KeptFile, error)
}

// Media reads attachments. See package media.
type Media interface {
	Fetch(ctx context.Context, l sessions.Lease, events []sessions.Event) error
	// List returns the attachments of a message and of its quote, without their contents.
	List(ctx context.Context, key sessions.Key, e sessions.Event) ([]sessions.Media, error)
}

// Desk keeps and lists files.
type Desk struct {
	Store    Store
	Media    Media
	Location *time.Location
}

// Request is a message that asks to keep its files, those of its quote, or the newest that its sender sent before.
type Request struct {
	Lease   sessions.Lease
	Session sessions.Session
	Tail    []sessions.Event // before the message
	Asked   sessions.Event
	Lang    string
	// Keep stores a file whose pages the session has, with the rights of the sender. Its errors are those of [manage.Files].
	Keep func(context.Context, sessions.KeptFile) (sessions.Keeping, error)
}

// Answer keeps files, and returns the answer. A repeated attempt gives the same one.
func (d *Desk) Answer(ctx context.Context, r Request) string {
	from, ok := r.source()
	if !ok {
		return wording.Say(r.inPlace(wording.KeepNoneHere, wording.KeepNone), r.Lang)
	}
	if err := d.Media.Fetch(ctx, r.Lease, []sessions.Event{from}); err != nil {
		return d.failed(ctx, err, r.Lang)
	}
	list, err := d.Media.List(ctx, r.Lease.Key, from)
	if err != nil {
		return d.failed(ctx, err, r.Lang)
	}
	var lines []string
	isKept := false
	for _, m := range list {
		line, kept := d.keep(ctx, r, from, m)
		lines, isKept = append(lines, line), isKept || kept
	}
	if len(lines) == 0 {
		return wording.Say(r.inPlace(wording.KeepNoneHere, wording.KeepNone), r.Lang)
	}
	if isKept {
		lines = append(lines, wording.Say(r.readers(), r.Lang)+wording.Say(wording.KeepHow, r.Lang))
	}
	return strings.Join(lines, "\n\n")
}

func (d *Desk) failed(ctx context.Context, err error, lang string) string {
	zerolog.Ctx(ctx).Warn().Err(err).Msg("File could not be kept")
	return wording.Say(wording.KeepFailed, lang)
}

// bringsFile reports whether a message or its quote has a file. A quote of the log's is read from there.
func bringsFile(e sessions.Event) bool {
	m := e.Message
	return m != nil && e.Content != sessions.ErasedText &&
		(m.Quote != nil && m.Quote.Event != 0 || slices.ContainsFunc(m.Attachments, func(a sessions.Attachment) bool { return a.Kind == "file" || a.Quoted }))
}

// source is the message whose files are meant.
func (r Request) source() (sessions.Event, bool) {
	if bringsFile(r.Asked) || r.Asked.Message != nil && r.Asked.Message.Quote != nil {
		return r.Asked, bringsFile(r.Asked)
	}
	for _, e := range slices.Backward(r.Tail) {
		if e.Role == sessions.RoleUser && e.SenderID != "" && e.SenderID == r.Asked.SenderID && bringsFile(e) {
			return e, true
		}
	}
	return sessions.Event{}, false
}

func (r Request) keep(from sessions.Event, m sessions.Media) sessions.KeptFile {
	f := sessions.KeptFile{
		Key: r.Lease.Key, Name: NameOf(m.Name), Kind: m.Kind, Media: m.ID, Bytes: m.Bytes, Pages: m.Pages, KeptBy: r.Asked.SenderID, KeptFrom: r.Asked.ID,
		SentBy: from.SenderID, Event: m.Event,
	}
	if !m.Quoted {
		return f
	}
	q := from.Message.Quote
	if f.SentBy = ""; q != nil && !q.FromBot {
		f.SentBy = q.SenderID
	}
	if m.Event == from.ID && f.SentBy != "" && f.SentBy != from.SenderID {
		f.Event = 0 // the quoting message is another person's
	}
	return f
}

// keep keeps one file, and returns its line.
func (d *Desk) keep(ctx context.Context, r Request, from sessions.Event, m sessions.Media) (line string, isKept bool) {
	name := wording.Literal(NameOf(m.Name))
	switch {
	case m.Fault != "":
		return strings.TrimSpace(wording.FaultOf(m, r.Lang)), false
	case m.Kind == sessions.MediaPicture:
		return wording.Say(wording.KeepPicture, r.Lang), false
	}
	kept, err := r.Keep(ctx, r.keep(from, m))
	switch {
	case errors.Is(err, sessions.ErrManyFiles):
		return wording.Say(wording.KeepManyFiles, r.Lang, sessions.MaxFiles), false
	case errors.Is(err, sessions.ErrManyPages):
		return wording.Say(wording.KeepManyPages, r.Lang, name, m.Pages, sessions.MaxFilePages), false
	case errors.Is(err, sessions.ErrOthersFile):
		return wording.Say(wording.KeepNotYours, r.Lang, wording.Literal(kept.Name), kept.ID), false
	case err != nil:
		return d.failed(ctx, err, r.Lang), false
	case kept.Known && kept.KeptFrom != r.Asked.ID:
		return wording.Say(wording.KeepKnown, r.Lang, wording.Literal(kept.Name), kept.ID), true
	case kept.Version > 1:
		return wording.Say(wording.KeepReplaced, r.Lang, wording.Literal(kept.Name), kept.Version, kept.Pages, kept.ID), true
	}
	zerolog.Ctx(ctx).Info().Int64("file", kept.ID).Int("version", kept.Version).Int("pages", kept.Pages).Msg("File kept")
	return wording.Say(wording.KeepDone, r.Lang, wording.Literal(kept.Name), kept.Pages, kept.ID), true
}

func (r Request) isPrivate() bool { return r.Session.ConversationType == sessions.Private }

func (r Request) inPlace(private, group wording.Phrase) wording.Phrase {
	if r.isPrivate() {
		return private
	}
	return group
}

// readers names those who find the file.
func (r Request) readers() wording.Phrase {
	if !r.isPrivate() && r.Lease.Key != sessions.NewKey(r.Session.RobotCode, r.Session.ConversationID, "") {
		return wording.KeepForMember
	}
	return r.inPlace(wording.KeepForPerson, wording.KeepForGroup)
}

// brackets would end a name in a citation.
var brackets = strings.NewReplacer("[", "［", "]", "］", "《", "〈", "》", "〉")

// NameOf is a file's name in one line of at most [sessions.MaxFileName] visible characters. It keeps its extension.
func NameOf(name string) string {
	name = norm.NFC.String(brackets.Replace(text.Clean(name)))
	name = strings.Join(strings.Fields(name), " ")
	if strings.Trim(name, " \u200d") == "" {
		return "文件 file"
	}
	rs := []rune(name)
	if len(rs) <= sessions.MaxFileName {
		return name
	}
	ext := []rune(path.Ext(name))
	if len(ext) > 8 {
		ext = nil
	}
	return string(rs[:sessions.MaxFileName-len(ext)-1]) + "…" + string(ext)
}

// Describe is the answer to a request for the kept files of a session.
func (d *Desk) Describe(ctx context.Context, key sessions.Key, lang string) string {
	list, err := d.Store.Files(ctx, key)
	switch {
	case err != nil:
		return d.failed(ctx, err, lang)
	case len(list) == 0:
		return wording.Say(wording.FilesNone, lang)
	}
	var out strings.Builder
	out.WriteString(wording.Say(wording.FilesHead, lang, len(list)))
	for _, f := range list {
		by := f.Keeper
		if by == "" {
			by = wording.Say(wording.FileKeeper, lang)
		}
		out.WriteString(wording.Say(wording.FileLine, lang, f.ID, wording.Literal(f.Name), f.Version, f.Pages, Size(f.Bytes),
			wording.Literal(sessions.Nick(by)), f.KeptAt.In(d.Location).Format("2006-01-02 15:04")))
	}
	return out.String() + wording.Say(wording.FilesHow, lang)
}

// Size is a number of bytes in words.
func Size(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// Find is the kept file of a number, or of a name as people write it.
func (d *Desk) Find(ctx context.Context, key sessions.Key, what string) (sessions.KeptFile, error) {
	list, err := d.Store.Files(ctx, key)
	if err != nil {
		return sessions.KeptFile{}, err
	}
	what = strings.TrimSpace(strings.Trim(strings.TrimSpace(what), "《》\"“”'`"))
	if id, err := strconv.ParseInt(strings.TrimSpace(strings.TrimLeft(what, "#＃")), 10, 64); err == nil {
		if at := slices.IndexFunc(list, func(f sessions.KeptFile) bool { return f.ID == id }); at >= 0 {
			return list[at], nil
		}
	}
	name := text.Fold(NameOf(what))
	for _, f := range list {
		if text.Fold(f.Name) == name || text.Fold(NameOf(wording.Literal(f.Name))) == name {
			return f, nil
		}
	}
	return sessions.KeptFile{}, sessions.ErrNotFound
}
