package bot

import (
	"context"
	"strings"

	"github.com/rs/zerolog"

	"ebb/memory"
)

// Of an export a message holds so much, read in pages.
const (
	exportedBytes = 12_000
	exportedPage  = 200
)

// exportCommand is /export me: a person's own data, where nobody else reads it.
func (b *Bot) exportCommand(ctx context.Context, t *turn, rest string) string {
	if word := strings.ToLower(rest); word != "me" && word != "我" {
		return say(sayExportUsage, t.lang)
	}
	a := b.asker(t)
	if b.cfg.Rights == nil || a.Person == "" {
		return say(sayNoRights, t.lang)
	}
	if !a.Reader.Private {
		return say(sayExportPrivate, t.lang)
	}
	text, whole, err := b.exported(ctx, a, t.lang)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("A person's data could not be exported")
		return say(sayNoRights, t.lang)
	}
	switch {
	case text == "":
		return say(sayExportEmpty, t.lang)
	case !whole:
		text += say(sayExportMore, t.lang, a.Person)
	}
	return text
}

// exported is a person's data as Markdown, as the robot that is asked was told it, and whether that is all of it.
func (b *Bot) exported(ctx context.Context, a memory.Asker, lang string) (text string, whole bool, err error) {
	var out strings.Builder
	facts, messages := memory.ExportHeads(lang)
	// add writes a line under its heading, and reports whether there was room.
	headed := ""
	add := func(head, line string) bool {
		if headed != head {
			headed, line = head, "\n"+head+"\n\n"+line
		}
		if out.Len()+len(line) > exportedBytes {
			return false
		}
		out.WriteString(line)
		return true
	}
	for after := int64(0); ; {
		page, err := b.cfg.Rights.FactsOf(ctx, a.Reader.Robot, a.Person, after, exportedPage)
		if err != nil {
			return "", false, err
		}
		for _, m := range page {
			after = m.ID
			if !add(facts, memory.ExportFact(m, b.cfg.Location, lang)) {
				return out.String(), false, nil
			}
		}
		if len(page) < exportedPage {
			break
		}
	}
	for after := int64(0); ; {
		page, err := b.cfg.Rights.MessagesOf(ctx, a.Reader.Robot, a.Person, after, exportedPage)
		if err != nil {
			return "", false, err
		}
		for _, s := range page {
			after = s.Event.ID
			if isKnown(b.ownWords(s.Event)) {
				continue
			}
			if !add(messages, memory.ExportSaid(s, b.cfg.Location, lang)) {
				return out.String(), false, nil
			}
		}
		if len(page) < exportedPage {
			return strings.TrimSpace(out.String()) + "\n", true, nil
		}
	}
}
