package command

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/knowledge"
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

func askerOf(t *view.CommandTurn, admin bool) memory.Asker {
	return memory.Asker{Reader: t.Reader(), Person: t.Asked.SenderID, Admin: admin}
}

// memoryCommand is /memory, besides forgetting.
type memoryCommand struct {
	rights   memory.Rights
	manage   *manage.Manager
	roles    roles
	location *time.Location
}

func memoryOf(e *env) memoryCommand {
	return memoryCommand{e.opts.Rights, e.manage, e.roles(), e.shared.Location}
}

// list shows one memory for "/memory #12", else a page of them.
func (m memoryCommand) list(ctx context.Context, t *view.CommandTurn, c Call) string {
	page, ok := pageOf(c.Arg)
	switch {
	case !ok && memoryID(c.Arg) > 0:
		return m.show(ctx, t, c)
	case !ok:
		return c.Command.usage(t.Lang)
	}
	a := askerOf(t, m.roles.isAdmin(t.Asked))
	skip := (page - 1) * listedMemories
	list, total, err := m.rights.Known(ctx, a, skip, listedMemories)
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
		for _, f := range list {
			if f.Own != own {
				continue
			}
			if first {
				out.WriteString(wording.Say(head, t.Lang) + "\n\n")
			}
			first = false
			out.WriteString(memoryLine(f.Memory, m.location, t.Lang))
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

func (m memoryCommand) show(ctx context.Context, t *view.CommandTurn, c Call) string {
	id := memoryID(c.Arg)
	f, err := m.manage.Fact(ctx, m.roles.actor(t), id)
	if err != nil {
		return refusal(ctx, id, err, t.Lang)
	}
	scope, kind := show.ScopeWord(f.Scope, t.Lang), show.KindWord(f.Kind, t.Lang)
	return fmt.Sprintf("**#%d** %s%s\n\n%s", f.ID, teamMark(f.Memory, t.Lang), f.Content,
		wording.Say(wording.MemoryFrom, t.Lang, scope, kind, memoryDay(f.Memory, m.location)))
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
	default:
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to read or change memory")
	}
	return wording.Say(wording.NoRights, lang)
}

func (m memoryCommand) promote(ctx context.Context, t *view.CommandTurn, c Call) string {
	id := memoryID(c.Arg)
	shared, err := m.manage.Promote(ctx, m.roles.actor(t), id)
	if err != nil {
		return refusal(ctx, id, err, t.Lang)
	}
	return wording.Say(wording.Promoted, t.Lang, headOf(shared.Content, quotedChars), shared.ID)
}

// keepCommand is /keep and /files, and deletes kept files.
type keepCommand struct {
	desk   *knowledge.Desk
	manage *manage.Manager
	roles  roles
	views  *view.Builder
}

func keepOf(e *env) keepCommand { return keepCommand{e.opts.Knowledge, e.manage, e.roles(), e.views} }

// rewrite makes the command of words that ask to keep a file.
func (k keepCommand) rewrite(e *sessions.Event) {
	if e.IsScheduled() || e.IsPress() {
		return
	}
	if own := k.views.Words.OwnWords(*e); knowledge.Asks(own) {
		if e.Content = "/keep"; strings.ContainsFunc(own, isHan) {
			e.Content = "/记住文件"
		}
	}
}

func (k keepCommand) keep(ctx context.Context, t *view.CommandTurn, _ Call) string {
	return k.desk.Answer(ctx, knowledge.Request{
		Lease: t.Lease, Session: t.View.Session, Tail: t.View.Tail, Asked: t.Asked, Lang: t.Lang,
		Keep: func(ctx context.Context, f sessions.KeptFile) (sessions.Keeping, error) {
			return k.manage.KeepFile(ctx, k.roles.actor(t), f, secondID(t.Asked))
		},
	})
}

// secondID is the other id of a message's sender; empty: not known.
func secondID(e sessions.Event) sessions.UserID {
	if e.Message == nil {
		return ""
	}
	return e.Message.EncryptedID
}

func (k keepCommand) list(ctx context.Context, t *view.CommandTurn, _ Call) string {
	return k.desk.Describe(ctx, t.Lease.Key, t.Lang)
}

var fileNameRE = regexp.MustCompile(`(?i)^[^@＠].*\.(?:pdf|docx?|xlsx?|pptx?|txt|md|markdown|csv|tsv|json|log|ya?ml|html?)[》"”]?$`)

// isFileName reports whether an argument is the name of a file that can be kept.
func isFileName(arg string) bool { return fileNameRE.MatchString(strings.TrimSpace(arg)) }

// forget is /forget file N, or the name of a file.
func (k keepCommand) forget(ctx context.Context, t *view.CommandTurn, c Call) string {
	f, err := k.desk.Find(ctx, t.Lease.Key, strings.TrimPrefix(narrow(c.Arg), "文件"))
	if errors.Is(err, sessions.ErrNotFound) {
		return wording.Say(wording.KeptUnknown, t.Lang)
	}
	if err == nil {
		err = k.manage.ForgetFile(ctx, k.roles.actor(t), f, secondID(t.Asked))
	}
	switch {
	case errors.Is(err, manage.NotTheirs):
		return wording.Say(wording.FileNotYours, t.Lang)
	case errors.Is(err, sessions.ErrNotFound): // a repeated attempt, or another administrator
		return wording.Say(wording.KeptUnknown, t.Lang)
	case err != nil:
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to forget a kept file")
		return wording.Say(wording.KeepFailed, t.Lang)
	}
	return wording.Say(wording.FileGone, t.Lang, wording.Literal(f.Name), f.ID)
}
