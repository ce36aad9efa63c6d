package media

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"

	"ebb/bot/chat"
	"ebb/bot/media/document"
	"ebb/sessions"
)

// Store keeps attachments.
type Store interface {
	// Attachments lists the known attachments of messages, without contents.
	Attachments(ctx context.Context, key sessions.Key, events []int64) ([]sessions.Media, error)
	// Pictures returns those that are still kept, by their ids.
	Pictures(ctx context.Context, key sessions.Key, ids []string) (map[string]sessions.Picture, error)
	// Pages returns pages of a document in order, from a number through another one.
	Pages(ctx context.Context, key sessions.Key, id string, from, through int) ([]sessions.MediaPage, error)
	// Keep stores an attachment with its picture or its pages, under the lease.
	Keep(ctx context.Context, l sessions.Lease, m sessions.Media, pages []sessions.MediaPage) error
}

// Parser reads a stranger's file. See [document.Sandbox].
type Parser interface {
	Read(ctx context.Context, file *os.File, page func(document.Page) error) (document.Content, error)
}

// Config has the dependencies and settings of a [Reader]. All are required.
type Config struct {
	Store   Store
	Files   chat.Files
	Parser  Parser
	MaxFile func() int64          // bytes of a file, as configured now
	Count   func(text string) int // tokens
}

// Reader reads attachments. Its methods may be called from any goroutine.
type Reader struct {
	cfg       Config
	downloads *semaphore.Weighted
	searches  *semaphore.Weighted
}

const (
	// parallel bounds the files that are on the disk at once.
	parallel = 4
	// searchesAtOnce bounds the documents that are searched at once.
	searchesAtOnce = 2
)

// New returns a reader.
func New(cfg Config) *Reader {
	return &Reader{cfg, semaphore.NewWeighted(parallel), semaphore.NewWeighted(searchesAtOnce)}
}

type attachmentPlace struct {
	event int64
	place int
}

// known has the rows of messages and of those that they quote.
func (r *Reader) known(ctx context.Context, key sessions.Key, events []sessions.Event) (map[attachmentPlace]sessions.Media, error) {
	var ids []int64
	for _, e := range events {
		if e.HasFiles() {
			ids = append(ids, e.ID)
			if q := e.Message.Quote; q != nil && q.Event != 0 {
				ids = append(ids, q.Event)
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := r.cfg.Store.Attachments(ctx, key, ids)
	if err != nil {
		return nil, err
	}
	known := make(map[attachmentPlace]sessions.Media, len(rows))
	for _, m := range rows {
		known[attachmentPlace{m.Event, m.Place}] = m
	}
	return known, nil
}

// Fetch downloads and stores the attachments of messages that are not stored yet. A failure of the platform is stored; the error is one of
// the storage, or the end of ctx.
func (r *Reader) Fetch(ctx context.Context, l sessions.Lease, events []sessions.Event) error {
	known, err := r.known(ctx, l.Key, events)
	if err != nil || !slices.ContainsFunc(events, func(e sessions.Event) bool { return e.HasFiles() }) {
		return err
	}
	read := map[string]sessions.Media{}
	for _, e := range events {
		if !e.HasFiles() {
			continue
		}
		for i, a := range e.Message.Attachments {
			before, isKnown := known[attachmentPlace{e.ID, i}]
			again := before.Fault == sessions.MediaUnavailable || before.Fault == sessions.MediaNoCalls
			if i >= sessions.MaxAttachments || !a.IsRead() || isKnown && !again || a.Quoted && quotedIsKnown(known, e.Message.Quote) {
				continue
			}
			if err := r.fetch(ctx, l, e, i, read); err != nil {
				return err
			}
		}
	}
	return nil
}

// quotedIsKnown reports whether the log has the files of a quoted message: another download would be another call.
func quotedIsKnown(known map[attachmentPlace]sessions.Media, q *sessions.Quote) bool {
	if q == nil || q.Event == 0 {
		return false
	}
	for at, m := range known {
		if at.event == q.Event && m.Fault == "" {
			return true
		}
	}
	return false
}

// fetch downloads, parses and stores one attachment. read has the contents of this turn by their ids: an equal one is not parsed again.
func (r *Reader) fetch(ctx context.Context, l sessions.Lease, e sessions.Event, at int, read map[string]sessions.Media) error {
	if err := r.downloads.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	defer r.downloads.Release(1)
	a := e.Message.Attachments[at]
	m := sessions.Media{Event: e.ID, Place: at, Name: a.Name}
	pages, err := r.read(ctx, e.Message.RobotCode, a, &m, read)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		if m.Fault == "" {
			return err
		}
		m.ID, m.Picture, pages = "", nil, nil
		zerolog.Ctx(ctx).Warn().Err(err).Str("fault", string(m.Fault)).Msg("Attachment could not be read")
	} else {
		zerolog.Ctx(ctx).Info().Str("kind", string(m.Kind)).Int64("bytes", m.Bytes).Int("pages", m.Pages).Msg("Attachment read")
	}
	if err := r.cfg.Store.Keep(ctx, l, m, pages); err != nil {
		return err
	}
	if m.Fault == "" {
		m.Picture = nil // the stored one serves
		read[m.ID] = m
	}
	return nil
}

// read fills in m. The error of a file has its fault in m; an error of this machine leaves it empty.
func (r *Reader) read(ctx context.Context, robot sessions.RobotCode, a sessions.Attachment, m *sessions.Media, before map[string]sessions.Media) ([]sessions.MediaPage, error) {
	file, err := nameless()
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if err := r.cfg.Files.Download(ctx, robot, a, file, r.cfg.MaxFile()); err != nil {
		m.Fault = sessions.MediaUnavailable
		if fault, ok := errors.AsType[*chat.FileError](err); ok {
			m.Fault = fault.Fault
		}
		return nil, err
	}
	if err := identify(file, m); err != nil {
		return nil, err
	}
	if same, ok := before[m.ID]; ok {
		m.Kind, m.Pages, m.Tokens = same.Kind, same.Pages, same.Tokens
		return nil, nil
	}
	var pages []sessions.MediaPage
	content, err := r.cfg.Parser.Read(ctx, file, func(p document.Page) error {
		pages = append(pages, sessions.MediaPage{Number: p.Number, Title: p.Title, Text: p.Text})
		return nil
	})
	if err != nil {
		if fault, ok := errors.AsType[*document.Fault](err); ok {
			m.Fault, m.Kind = sessions.MediaFault(fault.Reason), sessions.MediaKind(fault.Kind)
		}
		return nil, err
	}
	m.Kind, m.Pages = sessions.MediaKind(content.Kind), content.Pages
	if p := content.Picture; p != nil {
		m.Picture, m.Tokens = &sessions.Picture{Type: p.Type, Body: p.Body}, pictureTokens(p.Width, p.Height)
		return nil, nil
	}
	m.Tokens = r.size(pages)
	return pages, nil
}

// nameless returns a file that ends with this process, however it ends.
func nameless() (*os.File, error) {
	file, err := os.CreateTemp("", "ebb-file-")
	if err != nil {
		return nil, fmt.Errorf("making room for a file: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("making room for a file: %w", err), file.Close())
	}
	return file, nil
}

func identify(file *os.File, m *sessions.Media) error {
	sum := sha256.New()
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading a file: %w", err)
	}
	n, err := io.Copy(sum, file)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("reading a file: %w", err)
	}
	m.Bytes, m.ID = n, hex.EncodeToString(sum.Sum(nil)[:16])
	return nil
}

// A patch of 28 pixels is a token for the models that say how they count.
const patch = 28

func pictureTokens(width, height int) int {
	return ((width + patch - 1) / patch) * ((height + patch - 1) / patch)
}

// Small is the size up to which a document joins the question as a whole, in tokens. A larger one gives the question as much.
const Small = 2000

// size counts a small document, and estimates a large one from its beginning: a book would take seconds.
func (r *Reader) size(pages []sessions.MediaPage) int {
	counted, tokens, all := 0, 0, 0
	for _, p := range pages {
		n := utf8.RuneCountInString(p.Text)
		if all += n; tokens <= Small {
			counted, tokens = counted+n, tokens+r.cfg.Count(p.Text)
		}
	}
	if counted == 0 {
		return 0
	}
	return int(float64(tokens) * float64(all) / float64(counted))
}
