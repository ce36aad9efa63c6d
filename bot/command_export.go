package bot

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"ebb/memory"
	"ebb/memory/show"
)

// An export is read from the storage in batches, and answered in pages: a page is as many bytes as a few messages of
// DingTalk hold.
const (
	exportBatch     = 200
	exportPageBytes = 36_000
)

// exportCommand is /export me: a person's own data, in a private chat, a page at a time.
func (h *Handler) exportCommand(ctx context.Context, t *exchange, rest string) string {
	page, ok := exportPage(rest)
	if !ok {
		return say(sayExportUsage, t.lang)
	}
	a := h.asker(t)
	if h.cfg.Rights == nil || a.Person == "" {
		return say(sayNoRights, t.lang)
	}
	if !a.Reader.Private {
		return say(sayExportPrivate, t.lang)
	}
	p, err := h.export(ctx, a, t.lang, page)
	switch {
	case err != nil:
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Export of a person's data failed")
		return say(sayNoRights, t.lang)
	case p.page == 0:
		return say(sayExportEmpty, t.lang)
	case page > p.page:
		return say(sayNoPage, t.lang, page)
	case p.page > 1:
		p.out.WriteString(say(sayExportPage, t.lang, page, p.page))
		if page < p.page {
			p.out.WriteString(say(sayExportNext, t.lang, page+1))
		}
	}
	return p.out.String()
}

// exportPage reads what stands behind /export: me, and perhaps the number of a page.
func exportPage(rest string) (page int, ok bool) {
	words := strings.Fields(narrow(rest))
	if len(words) == 0 || len(words) > 2 || !strings.EqualFold(words[0], "me") && words[0] != "我" {
		return 0, false
	}
	if len(words) == 1 {
		return 1, true
	}
	page, err := strconv.Atoi(words[1])
	return page, err == nil && page > 0
}

// export makes one page of a person's data, as Markdown. It reads all of it: the number of pages is part of the answer.
func (h *Handler) export(ctx context.Context, a memory.Asker, lang string, page int) (*exportPager, error) {
	p := &exportPager{want: page}
	facts, messages := show.ExportHeads(lang)
	for after := int64(0); ; {
		batch, err := h.cfg.Rights.FactsOf(ctx, a.Reader.Robot, a.Person, after, exportBatch)
		if err != nil {
			return nil, err
		}
		for _, m := range batch {
			after = m.ID
			p.add(facts, show.ExportFact(m, h.cfg.Location, lang))
		}
		if len(batch) < exportBatch {
			break
		}
	}
	for after := int64(0); ; {
		batch, err := h.cfg.Rights.MessagesOf(ctx, a.Reader.Robot, a.Person, after, exportBatch)
		if err != nil {
			return nil, err
		}
		for _, s := range batch {
			after = s.Event.ID
			if !isKnown(h.views.ownWords(s.Event)) {
				p.add(messages, show.ExportSaid(s, h.cfg.Location, lang))
			}
		}
		if len(batch) < exportBatch {
			return p, nil
		}
	}
}

// exportPager divides lines into pages and keeps one of them.
type exportPager struct {
	want int
	page int // that lines go to now; 0 before the first
	size int // of it, in bytes
	head string
	out  strings.Builder // the wanted page
}

// add appends a line under its heading, which is repeated on each page. A line that no page holds is divided.
func (p *exportPager) add(head, line string) {
	for line != "" {
		if p.page == 0 || p.size > 0 && p.size+min(len(line), exportPageBytes) > exportPageBytes {
			p.page, p.size, p.head = p.page+1, 0, ""
		}
		if head != p.head {
			p.write("\n" + head + "\n\n")
			p.head = head
		}
		n := min(len(line), exportPageBytes)
		for n < len(line) && !utf8.RuneStart(line[n]) {
			n--
		}
		p.write(line[:n])
		line = line[n:]
		p.size += n
	}
}

func (p *exportPager) write(text string) {
	if p.page == p.want {
		p.out.WriteString(text)
	}
}
