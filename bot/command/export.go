package command

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"ebb/bot/manage"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/memory"
	"ebb/memory/show"
)

// ExportPageBytes bounds a page of an export: a few DingTalk messages.
const ExportPageBytes = 36_000

// exportMe is /export me: a person's own data, in a private chat, one page at a time.
func (h *Handler) exportMe(ctx context.Context, t *view.Exchange, c Call) string {
	page, ok := pageOf(c.Arg)
	if !ok {
		return c.Command.Usage(t.Lang)
	}
	a := h.actor(t)
	if h.cfg.Rights == nil || a.Person == "" {
		return wording.Say(wording.NoRights, t.Lang)
	}
	if !a.Reader.Private {
		return wording.Say(wording.ExportPrivate, t.Lang)
	}
	p, err := h.Export(ctx, a, t.Lang, page)
	switch {
	case err != nil:
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Export of a person's data failed")
		return wording.Say(wording.NoRights, t.Lang)
	case p.Page == 0:
		return wording.Say(wording.ExportEmpty, t.Lang)
	case page > p.Page:
		return wording.Say(wording.NoPage, t.Lang, page)
	case p.Page > 1:
		p.Out.WriteString(wording.Say(wording.ExportPage, t.Lang, page, p.Page))
		if page < p.Page {
			p.Out.WriteString(wording.Say(wording.ExportNext, t.Lang, page+1))
		}
	}
	return p.Out.String()
}

// pageOf parses a page number; no text is the first page.
func pageOf(text string) (page int, ok bool) {
	if text == "" {
		return 1, true
	}
	page, err := strconv.Atoi(narrow(text))
	return min(page, 1<<20), err == nil && page > 0
}

// Export renders one page of a person's data as Markdown. It reads all data, because the answer has the number of
// pages.
func (h *Handler) Export(ctx context.Context, a manage.Actor, lang string, page int) (*ExportPager, error) {
	p := &ExportPager{Want: page}
	facts, messages := show.ExportHeads(lang)
	err := h.manage.Export(ctx, a, a.Person, func(m memory.Memory) error {
		p.Add(facts, show.ExportFact(m, h.cfg.Location, lang))
		return nil
	}, func(s memory.PersonMessage) error {
		if !h.commands.IsKnown(h.views.OwnWords(s.Event)) {
			p.Add(messages, show.ExportSaid(s, h.cfg.Location, lang))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// ExportPager divides lines into pages and keeps one of them.
type ExportPager struct {
	Want int
	Page int // current page; 0 before the first
	size int // size of the current page, in bytes
	head string
	Out  strings.Builder // the wanted page
}

// Add appends a line under its heading, which each page repeats. It splits a line larger than a page.
func (p *ExportPager) Add(head, line string) {
	for line != "" {
		if p.Page == 0 || p.size > 0 && p.size+min(len(line), ExportPageBytes) > ExportPageBytes {
			p.Page, p.size, p.head = p.Page+1, 0, ""
		}
		if head != p.head {
			p.write("\n" + head + "\n\n")
			p.head = head
		}
		n := min(len(line), ExportPageBytes)
		for n < len(line) && !utf8.RuneStart(line[n]) {
			n--
		}
		p.write(line[:n])
		line = line[n:]
		p.size += n
	}
}

func (p *ExportPager) write(text string) {
	if p.Page == p.Want {
		p.Out.WriteString(text)
	}
}
