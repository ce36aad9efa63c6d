package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rs/zerolog"

	"ebb/compaction"
	"ebb/memory"
	"ebb/sessions"
)

// Of what is known so many memories are listed, each with so many bytes.
const (
	listedMemories = 20
	listedBytes    = 300
)

// memoryCommand is /memory: what is known of the asker and the conversation, or one of its words for a single memory.
func (b *Bot) memoryCommand(ctx context.Context, t *turn, rest string) string {
	if b.cfg.Rights == nil {
		return say(sayNoRights, t.lang)
	}
	words := strings.Fields(strings.ToLower(rest))
	if len(words) == 0 {
		return b.listMemories(ctx, t)
	}
	id := int64(0)
	if len(words) == 2 {
		id = memoryID(words[1])
	}
	switch {
	case id > 0 && slices.Contains([]string{"forget", "忘记", "删除"}, words[0]):
		return b.forgetMemory(ctx, t, id)
	case id > 0 && slices.Contains([]string{"promote", "团队"}, words[0]):
		return b.promote(ctx, t, id)
	}
	return b.help(ctx, t, "") // nothing is done by mistake
}

// memoryID reads the number of a memory, as people write it: 12 or #12. It is 0 for anything else.
func memoryID(word string) int64 {
	id, err := strconv.ParseInt(strings.TrimPrefix(word, "#"), 10, 64)
	if err != nil {
		return 0
	}
	return max(id, 0)
}

// asker is who asks what is known, and where.
func (t *turn) asker() memory.Asker {
	return memory.Asker{Reader: t.reader(), Person: t.asked[0].SenderID}
}

// listMemories tells what is known of the asker and the conversation, by the numbers that stay theirs.
func (b *Bot) listMemories(ctx context.Context, t *turn) string {
	a := t.asker()
	list, total, err := b.cfg.Rights.Known(ctx, a, listedMemories)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Memory could not be listed")
		return say(sayNoRights, t.lang)
	}
	if total == 0 {
		return say(sayKnowNothing, t.lang)
	}
	here := sayKnowGroup
	if a.Reader.Private {
		here = sayKnowChat
	}
	var out strings.Builder
	section := func(head phrase, own bool) {
		first := true
		for _, m := range list {
			if m.Own != own {
				continue
			}
			if first {
				out.WriteString(say(head, t.lang) + "\n\n")
			}
			first = false
			out.WriteString(b.memoryLine(m.Memory))
		}
		if !first {
			out.WriteByte('\n')
		}
	}
	section(sayKnowYou, true)
	section(here, false)
	if total > len(list) {
		out.WriteString(say(sayKnowMore, t.lang, total-len(list)) + "\n\n")
	}
	return out.String() + say(sayKnowHow, t.lang)
}

func (b *Bot) memoryLine(m memory.Memory) string {
	at := m.SaidAt
	if at.IsZero() {
		at = m.CreatedAt
	}
	text := compaction.HeadTail(strings.Join(strings.Fields(m.Content), " "), listedBytes)
	return fmt.Sprintf("- #%d %s (%s)\n", m.ID, text, at.In(b.cfg.Location).Format("2006-01-02"))
}

// forgetMemory deletes one memory: anybody's own, what they said, and for administrators what a conversation shares.
func (b *Bot) forgetMemory(ctx context.Context, t *turn, id int64) string {
	a := t.asker()
	m, err := b.cfg.Rights.KnownByID(ctx, a, id)
	switch {
	case errors.Is(err, sessions.ErrNotFound):
		return say(sayNoMemory, t.lang, id)
	case err != nil:
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Memory could not be read")
		return say(sayNoRights, t.lang)
	}
	// A private chat is its person's, but what the team shares is nobody's there.
	if theirs := m.Own || a.Reader.Private && m.Scope == memory.ScopeSession; !theirs && !b.isAdmin(t.asked[0]) {
		return say(sayNotYours, t.lang, id)
	}
	done, err := b.cfg.Rights.ForgetMemory(ctx, id, memory.Asking{Lease: t.lease, Event: t.asked[0].ID})
	if errors.Is(err, sessions.ErrNotFound) {
		return say(sayNoMemory, t.lang, id)
	}
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Memory was not forgotten")
		return say(sayNoRights, t.lang)
	}
	b.goOn(ctx, t, done.Lease)
	return say(sayForgotten, t.lang, done.Memories, done.Events, done.Summaries, done.Blobs, done.Replies, done.Embeddings)
}

// goOn has the turn go on with the lease that something it asked for left it, and with what is left of the view.
func (b *Bot) goOn(ctx context.Context, t *turn, lease sessions.Lease) {
	t.lease, t.pinned = lease, nil
	b.leases.Learn(lease)
	b.reload(ctx, t)
}

// promote shares a group's memory with the team, which only an administrator may.
func (b *Bot) promote(ctx context.Context, t *turn, id int64) string {
	if !b.isAdmin(t.asked[0]) {
		return say(sayNotAdmin, t.lang)
	}
	m, err := b.cfg.Rights.KnownByID(ctx, t.asker(), id)
	if err == nil && m.Scope != memory.ScopeGroup {
		err = sessions.ErrNotFound
	}
	if err == nil {
		m.Memory, err = b.cfg.Rights.Promote(ctx, id, t.asked[0].SenderID)
	}
	switch {
	case errors.Is(err, sessions.ErrNotFound):
		return say(sayNotPromoted, t.lang, id)
	case err != nil:
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Memory was not promoted")
		return say(sayNoRights, t.lang)
	}
	return say(sayPromoted, t.lang, m.ID)
}

// Of an export a message holds so much, read in pages.
const (
	exportedBytes = 12_000
	exportedPage  = 200
)

// exportCommand is /export me: a person's own data, where nobody else reads it.
func (b *Bot) exportCommand(ctx context.Context, t *turn, rest string) string {
	if word := strings.ToLower(rest); word != "me" && word != "我" {
		return b.help(ctx, t, "")
	}
	a := t.asker()
	if b.cfg.Rights == nil || a.Person == "" {
		return say(sayNoRights, t.lang)
	}
	if !a.Reader.Private {
		return say(sayExportPrivate, t.lang)
	}
	text, whole, err := b.exported(ctx, a.Person, t.lang)
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

// exported is a person's data as Markdown, and whether that is all of it.
func (b *Bot) exported(ctx context.Context, who sessions.UserID, lang string) (text string, whole bool, err error) {
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
		page, err := b.cfg.Rights.FactsOf(ctx, who, after, exportedPage)
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
		page, err := b.cfg.Rights.MessagesOf(ctx, who, after, exportedPage)
		if err != nil {
			return "", false, err
		}
		for _, s := range page {
			after = s.Event.ID
			if !add(messages, memory.ExportSaid(s, b.cfg.Location, lang)) {
				return out.String(), false, nil
			}
		}
		if len(page) < exportedPage {
			return strings.TrimSpace(out.String()) + "\n", true, nil
		}
	}
}
