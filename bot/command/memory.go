package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/manage"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/memory"
	"ebb/memory/show"
	"ebb/sessions"
)

// Bounds of an answer: facts on a page, characters of each, and characters of a repeated fact.
const (
	listedMemories = 20
	listedChars    = 80
	quotedChars    = 60
)

func narrow(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r >= '０' && r <= '９' || r == '＃' || r == '＠' {
			return r - 0xfee0
		}
		return r
	}, text))
}

func askerOf(t *view.CommandTurn, admin bool) memory.Asker {
	return memory.Asker{Reader: t.Reader(), Person: t.Asked.SenderID, Admin: admin}
}

// listMemories shows one memory for "/memory #12", else a page of them.
func (h *Handler) listMemories(ctx context.Context, t *view.CommandTurn, c Call) string {
	page, ok := pageOf(c.Arg)
	switch {
	case !ok && memoryID(c.Arg) > 0:
		return h.showMemory(ctx, t, c)
	case !ok:
		return c.Command.usage(t.Lang)
	case h.opts.Rights == nil:
		return wording.Say(wording.NoRights, t.Lang)
	}
	a := askerOf(t, h.isAdmin(t.Asked))
	skip := (page - 1) * listedMemories
	list, total, err := h.opts.Rights.Known(ctx, a, skip, listedMemories)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to list memory")
		return wording.Say(wording.NoRights, t.Lang)
	}
	switch {
	case len(list) == 0 && page > 1:
		return wording.Say(wording.NoPage, t.Lang, page)
	case len(list) == 0:
		return wording.Say(wording.KnowNothing, t.Lang)
	}
	here := wording.KnowGroup
	if a.Reader.Private {
		here = wording.KnowChat
	}
	var out strings.Builder
	section := func(head wording.Phrase, own bool) {
		first := true
		for _, m := range list {
			if m.Own != own {
				continue
			}
			if first {
				out.WriteString(wording.Say(head, t.Lang) + "\n\n")
			}
			first = false
			out.WriteString(memoryLine(m.Memory, h.shared.Location, t.Lang))
		}
		if !first {
			out.WriteByte('\n')
		}
	}
	section(wording.KnowYou, true)
	section(here, false)
	if left := total - skip - len(list); left > 0 {
		out.WriteString(wording.Say(wording.KnowMore, t.Lang, left, page+1) + "\n\n")
	}
	return out.String() + wording.Say(wording.KnowHow, t.Lang)
}

func memoryLine(m memory.Memory, loc *time.Location, lang string) string {
	return fmt.Sprintf("- #%d %s%s (%s)\n", m.ID, teamMark(m, lang), headOf(m.Content, listedChars), memoryDay(m, loc))
}

func memoryDay(m memory.Memory, loc *time.Location) string {
	at := m.SaidAt
	if at.IsZero() {
		at = m.CreatedAt
	}
	return at.In(loc).Format("2006-01-02")
}

func teamMark(m memory.Memory, lang string) string {
	if m.Scope != memory.ScopeTeam {
		return ""
	}
	return wording.Say(wording.TeamMark, lang)
}

func headOf(content string, most int) string {
	rs := []rune(strings.Join(strings.Fields(content), " "))
	if len(rs) <= most {
		return string(rs)
	}
	return string(rs[:most]) + "…"
}

func (h *Handler) showMemory(ctx context.Context, t *view.CommandTurn, c Call) string {
	id := memoryID(c.Arg)
	m, err := h.manage.Fact(ctx, h.actor(t), id)
	if err != nil {
		return refusal(ctx, id, err, t.Lang)
	}
	scope, kind := show.ScopeWord(m.Scope, t.Lang), show.KindWord(m.Kind, t.Lang)
	return fmt.Sprintf("**#%d** %s%s\n\n%s", m.ID, teamMark(m.Memory, t.Lang), m.Content,
		wording.Say(wording.MemoryFrom, t.Lang, scope, kind, memoryDay(m.Memory, h.shared.Location)))
}

var refusals = map[manage.Refusal]wording.Phrase{
	manage.Superseded: wording.NoMemory, manage.Expired: wording.NoMemory, manage.NotTheirs: wording.NotYours,
	manage.TeamAlready: wording.TeamsAlready, manage.OfATask: wording.NotShared, manage.OfAPerson: wording.OnlyTheirs,
	manage.OfASession: wording.OnlyHere, manage.OfADay: wording.OnlyHere,
}

func refusal(ctx context.Context, id int64, err error, lang string) string {
	var why manage.Refusal
	switch {
	case errors.Is(err, manage.NotAllowed):
		return wording.Say(wording.NotAdmin, lang)
	case errors.As(err, &why):
		return wording.Say(refusals[why], lang, id)
	case errors.Is(err, sessions.ErrNotFound):
		return wording.Say(wording.NoMemory, lang, id)
	case !errors.Is(err, manage.ErrUnavailable):
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to read or change memory")
	}
	return wording.Say(wording.NoRights, lang)
}

func (h *Handler) forgetMemory(ctx context.Context, t *view.CommandTurn, c Call) string {
	return h.forgetFact(ctx, t, memoryID(c.Arg), answerNone)
}

// factName is a fact as the argument of /forget.
func factName(id int64) string { return fmt.Sprintf("#%d", id) }

// forgetFact deletes a sender's own statement, and for administrators also a shared fact of a conversation. The fact of another person
// needs a confirmation.
func (h *Handler) forgetFact(ctx context.Context, t *view.CommandTurn, id int64, answer answerTo) string {
	f, own, err := h.manage.ForgettableFact(ctx, h.actor(t), id)
	switch who, sure := factName(id), answer == answerYes; {
	case err != nil:
		return refusal(ctx, id, err, t.Lang)
	case own || h.mayConfirm(ctx, t, who, !sure): // a command that is repeated confirms too
	case sure:
		return wording.Say(wording.NotAsked, t.Lang)
	default:
		t.Outcome = sessions.Previewed
		t.Kept = wording.Say(wording.ForgetFactAsked, t.Lang, id)
		return wording.Say(wording.ForgetFact, t.Lang, id, headOf(f.Content, quotedChars), memoryDay(f.Memory, h.shared.Location), id)
	}
	m, done, err := h.manage.ForgetFact(ctx, h.actor(t), id)
	switch {
	case err != nil && done.Sessions > 0: // each session has a commit of its own
		zerolog.Ctx(ctx).Warn().Err(err).Int("sessions", done.Sessions).Msg("Failed to erase memory")
		if !own { // the next confirmation does the rest
			t.Outcome = sessions.HalfErased
		}
		return wording.Say(wording.MemoryHalf, t.Lang)
	case err != nil:
		return refusal(ctx, id, err, t.Lang)
	}
	h.resumeTurn(ctx, t, done.Lease)
	too := ""
	if more := receipt(done, t.Lang); more != "" {
		too = wording.Say(wording.ForgottenToo, t.Lang, more)
	}
	t.Kept = wording.Say(wording.ForgottenLog, t.Lang, id) + too // the answer must not repeat deleted text in the log
	return wording.Say(wording.Forgotten, t.Lang, headOf(m.Content, quotedChars)) + too
}

func (h *Handler) resumeTurn(ctx context.Context, t *view.CommandTurn, lease sessions.Lease) {
	t.Lease = lease
	h.shared.Leases.Learn(lease)
	h.reload(ctx, t)
}

func (h *Handler) promote(ctx context.Context, t *view.CommandTurn, c Call) string {
	id := memoryID(c.Arg)
	shared, err := h.manage.Promote(ctx, h.actor(t), id)
	if err != nil {
		return refusal(ctx, id, err, t.Lang)
	}
	return wording.Say(wording.Promoted, t.Lang, headOf(shared.Content, quotedChars), shared.ID)
}
