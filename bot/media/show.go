package media

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ebb/sessions"
)

// maxPictures bounds the pictures of a request. When there are more, half of them go at once, the oldest first: a request then keeps its
// beginning for some pictures, and prompt caches hold.
const maxPictures = 12

// Show fills in the attachments of messages, with the contents that a request to the
// model that reads them shows. It reads nothing where no message has any.
func (r *Reader) Show(ctx context.Context, key sessions.Key, reads sessions.ModelID, events []sessions.Event) error {
	known, err := r.known(ctx, key, events)
	if err != nil || len(known) == 0 {
		return err
	}
	for i := range events {
		if events[i].HasFiles() {
			events[i].Media = mediaOf(events[i], known)
		}
	}
	if err := r.loadPictures(ctx, key, events); err != nil {
		return err
	}
	return r.loadTexts(ctx, key, reads, events)
}

// List returns the attachments of a message and of its quote, without their contents.
func (r *Reader) List(ctx context.Context, key sessions.Key, e sessions.Event) ([]sessions.Media, error) {
	known, err := r.known(ctx, key, []sessions.Event{e})
	if err != nil || len(known) == 0 {
		return nil, err
	}
	return mediaOf(e, known), nil
}

// mediaOf lists a message's own attachments and those of its quote. The log's are taken for a quote whose own could not be had.
func mediaOf(e sessions.Event, known map[attachmentPlace]sessions.Media) (list []sessions.Media) {
	hasQuoted := false
	for i, a := range e.Message.Attachments {
		if m, ok := known[attachmentPlace{e.ID, i}]; ok {
			m.Quoted = a.Quoted
			if a.Quoted && m.Fault != "" && quotedIsKnown(known, e.Message.Quote) {
				continue
			}
			hasQuoted = hasQuoted || a.Quoted
			list = append(list, m)
		}
	}
	if q := e.Message.Quote; q != nil && q.Event != 0 && !hasQuoted {
		for i := range sessions.MaxAttachments {
			if m, ok := known[attachmentPlace{q.Event, i}]; ok {
				m.Quoted = true
				list = append(list, m)
			}
		}
	}
	return list
}

// each calls f for each attachment of a kind with a content, from the oldest on.
func each(events []sessions.Event, isKind func(sessions.Media) bool, f func(*sessions.Media)) {
	for i := range events {
		for j := range events[i].Media {
			if m := &events[i].Media[j]; m.Fault == "" && isKind(*m) {
				f(m)
			}
		}
	}
}

func isPicture(m sessions.Media) bool { return m.Kind == sessions.MediaPicture }

func isSmall(m sessions.Media) bool { return !isPicture(m) && m.Tokens <= Small }

// isLarge reports whether a document is searched, and not shown as a whole.
func isLarge(m sessions.Media) bool { return m.Fault == "" && !isPicture(m) && m.Tokens > Small }

func (r *Reader) loadPictures(ctx context.Context, key sessions.Key, events []sessions.Event) error {
	n := 0
	each(events, isPicture, func(*sessions.Media) { n++ })
	if n == 0 {
		return nil
	}
	const half = maxPictures / 2
	skip := max(0, (n-maxPictures+half-1)/half*half)
	var ids []string
	shown := map[*sessions.Media]bool{}
	each(events, isPicture, func(m *sessions.Media) {
		if skip--; skip < 0 {
			shown[m] = true
			if !slices.Contains(ids, m.ID) {
				ids = append(ids, m.ID)
			}
		}
	})
	pictures, err := r.cfg.Store.Pictures(ctx, key, ids)
	if err != nil {
		return err
	}
	each(events, isPicture, func(m *sessions.Media) {
		if p, kept := pictures[m.ID]; kept && shown[m] {
			m.Picture = &p
		}
	})
	return nil
}

func (r *Reader) loadTexts(ctx context.Context, key sessions.Key, reads sessions.ModelID, events []sessions.Event) (err error) {
	texts := map[string]string{}
	each(events, isSmall, func(m *sessions.Media) {
		text, known := texts[m.ID]
		if !known && err == nil {
			var pages []sessions.MediaPage
			if pages, err = r.cfg.Store.Pages(ctx, key, m.ID, 1, max(1, m.Pages)); err == nil {
				text = pagesText(readable(pages, reads), m.Pages)
				texts[m.ID] = text
			}
		}
		m.Text = text
	})
	return err
}

// readable puts a note in place of the text of pages that a model refuses.
func readable(pages []sessions.MediaPage, reads sessions.ModelID) []sessions.MediaPage {
	for i := range pages {
		if pages[i].Withheld.From(reads, sessions.WithheldBody) {
			pages[i].Title, pages[i].Text = "", sessions.WithheldText
		}
	}
	return pages
}

// pagesText joins pages, each behind its number where there are several.
func pagesText(pages []sessions.MediaPage, all int) string {
	var b strings.Builder
	for _, p := range pages {
		if all > 1 || p.Title != "" {
			b.WriteString(heading(p) + "\n")
		}
		b.WriteString(strings.TrimSpace(p.Text) + "\n")
	}
	return strings.TrimSpace(b.String())
}

// heading is the line before a page: people cite the numbers of pages.
func heading(p sessions.MediaPage) string {
	if p.Title != "" {
		return fmt.Sprintf("[第 %d 页 page %d: %s]", p.Number, p.Number, sessions.QuoteText(p.Title))
	}
	return fmt.Sprintf("[第 %d 页 page %d]", p.Number, p.Number)
}
