package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"ebb/bot/manage"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/memory"
	"ebb/sessions"
)

func erasedBefore(asked sessions.Event, lang string) string {
	if asked.SenderID == "" {
		return wording.Say(wording.ForgotBefore, lang)
	}
	return wording.Say(wording.ForgotLastBefore, lang)
}

// forgetCommand is /forget, and /memory forget.
type forgetCommand struct {
	manage   *manage.Manager
	roles    roles
	views    *view.Builder
	table    Table
	location *time.Location
	asked    confirmations
	refresh  refresher
}

func forgetOf(e *env) forgetCommand {
	return forgetCommand{e.manage, e.roles(), e.views, e.table, e.shared.Location, confirmationsOf(e), refresher{e.stores.Turns, e.views, e.shared.Leases}}
}

func (f forgetCommand) me(ctx context.Context, t *view.CommandTurn, c Call) string {
	who, answer := forgetWords(c.Rest)
	switch {
	case answer == answerNo:
		return wording.Say(wording.ForgetNothing, t.Lang)
	case who != forgetMe:
		return c.Command.usage(t.Lang)
	}
	return f.someone(ctx, t, who, answer, func() (memory.Person, string) { return memory.Person{ID: t.Asked.SenderID}, "" })
}

// number is /forget #N. A number without the sign may be the staff id of a person.
func (f forgetCommand) number(ctx context.Context, t *view.CommandTurn, c Call) string {
	who, answer := forgetWords(c.Rest)
	id := memoryID(who)
	switch {
	case answer == answerNo:
		return wording.Say(wording.ForgetNothing, t.Lang)
	case strings.HasPrefix(narrow(who), "#"):
		return f.fact(ctx, t, id, answer)
	case !f.roles.may(t.Asked, Admin):
		return wording.Say(wording.ForgetNumber, t.Lang, id, id)
	}
	return f.named(ctx, t, c)
}

func isNumber(arg string) bool {
	who, _ := forgetWords(arg)
	return memoryID(who) > 0
}

// deniedForget answers a member who asks to forget a thing in words: only a person's name needs an administrator.
func deniedForget(arg string) wording.Phrase {
	if strings.HasPrefix(narrow(arg), "@") {
		return wording.NotAdmin
	}
	return wording.ForgetThing
}

func (f forgetCommand) named(ctx context.Context, t *view.CommandTurn, c Call) string {
	who, answer := forgetWords(c.Rest)
	if answer == answerNo {
		return wording.Say(wording.ForgetNothing, t.Lang)
	}
	return f.someone(ctx, t, who, answer, func() (memory.Person, string) { return f.find(ctx, t, who) })
}

// someone previews an erasure, and executes it once it is confirmed. find is called after the check of the
// confirmation; its text is the answer if there is no such person.
func (f forgetCommand) someone(ctx context.Context, t *view.CommandTurn, who string, answer answerTo, find func() (memory.Person, string)) string {
	sure := answer == answerYes
	switch {
	case t.Asked.SenderID == "":
		return wording.Say(wording.UnknownPerson, t.Lang)
	case sure && !f.asked.may(ctx, t, who, false):
		return wording.Say(wording.NotAsked, t.Lang)
	}
	p, why := find()
	switch {
	case why != "":
		return why
	case sure || f.asked.may(ctx, t, who, true): // repeated command
		return f.person(ctx, t, p.ID)
	}
	return f.preview(ctx, t, p, who)
}

const maxTitles = 5

// preview asks for confirmation. In a group the preview has numbers only, and not the other groups of a person.
func (f forgetCommand) preview(ctx context.Context, t *view.CommandTurn, p memory.Person, who string) string {
	self := p.ID == t.Asked.SenderID
	a := f.roles.actor(t)
	everywhere := a.Role == manage.Admin && watched(t, p.ID)
	if everywhere { // the group reads no figures of their other conversations
		a.Role = manage.GroupAdmin
	}
	found, err := f.manage.PreviewPerson(ctx, a, p.ID)
	switch {
	case errors.Is(err, memory.ErrTooOften):
		return wording.Say(wording.ForgetOften, t.Lang, memory.MaxErasures)
	case err != nil:
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to preview the erasure of a person")
		return wording.Say(wording.NoRights, t.Lang)
	}
	t.Outcome = sessions.Previewed
	what := previewInWords(found, t.Lang)
	if what == "" {
		what = wording.Say(wording.ForgetLittle, t.Lang)
	} else if !watched(t, p.ID) {
		what += groupsInWords(found.Groups, t.View.Session.ConversationType == sessions.Private && self, t.Lang)
	}
	if self {
		return wording.Say(wording.ForgetMe, t.Lang, what)
	}
	t.Kept = wording.Say(wording.ForgetAsked, t.Lang) // a name must not stay in the log of another conversation
	if watched(t, p.ID) {
		phrase := wording.ForgetHere
		if everywhere {
			phrase = wording.ForgetEverywhere
		}
		return wording.Say(phrase, t.Lang, sessions.Speaker(p.Nick, p.ID), what, strings.TrimPrefix(who, "@"))
	}
	return wording.Say(wording.ForgetWho, t.Lang, sessions.Speaker(p.Nick, p.ID), p.Last.In(f.location).Format("2006-01-02 15:04"), what,
		strings.TrimPrefix(who, "@"))
}

// watched reports whether a group reads an answer about another person.
func watched(t *view.CommandTurn, who sessions.UserID) bool {
	return t.View.Session.ConversationType != sessions.Private && who != t.Asked.SenderID
}

func groupsInWords(groups []string, named bool, lang string) string {
	titles := slices.DeleteFunc(slices.Clone(groups), func(title string) bool { return title == "" })
	if len(titles) > maxTitles {
		titles = append(titles[:maxTitles], "…")
	}
	names := ""
	if named && len(titles) > 0 {
		names = wording.Say(wording.Colon, lang) + strings.Join(titles, wording.Say(wording.Comma, lang))
	}
	if len(groups) == 0 {
		return ""
	}
	return wording.Say(wording.ForgetGroups, lang, len(groups), names)
}

// last erases without a confirmation: a password that went out by mistake can't wait for one. The answer names time and length
// and not the words, which it would show once more.
func (f forgetCommand) last(ctx context.Context, t *view.CommandTurn, c Call) string {
	asked := t.Asked
	who, answer := forgetWords(c.Rest)
	switch {
	case answer == answerNo:
		return wording.Say(wording.ForgetNothing, t.Lang)
	case who != forgetLast:
		return c.Command.usage(t.Lang)
	case asked.SenderID == "":
		return wording.Say(wording.UnknownPerson, t.Lang)
	}
	e, done, err := f.manage.ForgetLast(ctx, f.roles.actor(t), func(e sessions.Event) bool { return e.IsScheduled() || isEmpty(e) || isCommand(f.table, f.views, e) })
	switch {
	case errors.Is(err, sessions.ErrNotFound) && e.ID == 0:
		return wording.Say(wording.NoLast, t.Lang)
	case err != nil:
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to erase a message")
		return wording.Say(wording.NoRights, t.Lang)
	}
	f.refresh.resume(ctx, t, done.Lease)
	length := "" // distinguishes messages of one minute; the words would be kept, and shown once more
	if n := utf8.RuneCountInString(f.views.Words.OwnWords(e)); n > 0 {
		length = wording.Say(wording.ForgotLength, t.Lang, n)
	}
	return wording.Say(wording.ForgotLast, t.Lang, e.CreatedAt.In(f.location).Format("01-02 15:04"), length, receiptOfPerson(done, t.Lang))
}

func isEmpty(e sessions.Event) bool {
	return e.Content == "" && (e.Message == nil || e.Message.Quote == nil && len(e.Message.Attachments) == 0)
}

func (f forgetCommand) find(ctx context.Context, t *view.CommandTurn, name string) (_ memory.Person, why string) {
	p, err := f.manage.FindPerson(ctx, f.roles.actor(t), strings.TrimPrefix(name, "@"))
	var several *manage.Ambiguous
	switch {
	case err == nil:
		return p, ""
	case errors.Is(err, sessions.ErrNotFound) && memoryID(name) > 0:
		return p, wording.Say(wording.ForgetNumber, t.Lang, memoryID(name), memoryID(name))
	case errors.Is(err, sessions.ErrNotFound):
		return p, wording.Say(wording.UnknownPerson, t.Lang)
	case !errors.As(err, &several):
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to look up a person")
		return p, wording.Say(wording.NoRights, t.Lang)
	}
	t.Kept = wording.Say(wording.Which, t.Lang)
	why = t.Kept + "\n\n"
	for _, p := range several.People {
		why += fmt.Sprintf("- %s\n", sessions.Speaker(p.Nick, p.ID))
	}
	return p, why
}

// person writes no name into a person's own receipt, because a reply is stored too.
func (f forgetCommand) person(ctx context.Context, t *view.CommandTurn, who sessions.UserID) string {
	self := who == t.Asked.SenderID
	a, here := f.roles.actor(t), watched(t, who)
	done, err := f.manage.ForgetPerson(ctx, a, who)
	if errors.Is(err, memory.ErrTooOften) {
		return wording.Say(wording.ForgetOften, t.Lang, memory.MaxErasures)
	}
	if err != nil {
		t.Outcome = sessions.HalfErased
		if self {
			return wording.Say(wording.ForgetHalf, t.Lang)
		}
		t.Kept = wording.Say(wording.MemoryHalf, t.Lang)
		return wording.Say(wording.ForgetHalfWho, t.Lang, who) // the log may not have their name any more
	}
	if self {
		t.Asked = nameless(t.Asked, t.Lang)
		t.View.Pending[0] = nameless(t.View.Pending[0], t.Lang)
	}
	f.refresh.resume(ctx, t, done.Lease)
	what := receiptOfPerson(done, t.Lang)
	switch {
	case here && a.Role == manage.GroupAdmin:
		return wording.Say(wording.ForgottenHere, t.Lang)
	case here || what == "":
		return wording.Say(wording.ForgotBefore, t.Lang)
	}
	return wording.Say(wording.PersonForgotten, t.Lang, what)
}

// nameless keeps only the destination of the answer.
func nameless(e sessions.Event, lang string) sessions.Event {
	e.SenderID, e.SenderNick, e.Content = "", "", memory.ForgetDone(lang)
	if m := e.Message; m != nil {
		to := sessions.Message{
			RobotCode: m.RobotCode, ConversationID: m.ConversationID, ConversationType: m.ConversationType, ID: m.ID,
			Webhook: m.Webhook, WebhookExpires: m.WebhookExpires, Kind: m.Kind, Text: e.Content,
		}
		if m.ConversationType == sessions.Private { // the webhook may expire first; the reply's row loses the id once it is sent
			to.StaffID = m.StaffID
		}
		e.Message = &to
	}
	return e
}

func (f forgetCommand) memory(ctx context.Context, t *view.CommandTurn, c Call) string {
	return f.fact(ctx, t, memoryID(c.Arg), answerNone)
}

// fact deletes a sender's own statement, and for administrators also a shared fact of a conversation. The fact of another person
// needs a confirmation.
func (f forgetCommand) fact(ctx context.Context, t *view.CommandTurn, id int64, answer answerTo) string {
	fact, own, err := f.manage.ForgettableFact(ctx, f.roles.actor(t), id)
	switch who, sure := factName(id), answer == answerYes; {
	case err != nil:
		return refusal(ctx, id, err, t.Lang)
	case own || f.asked.may(ctx, t, who, !sure): // a command that is repeated confirms too
	case sure:
		return wording.Say(wording.NotAsked, t.Lang)
	default:
		t.Outcome = sessions.Previewed
		t.Kept = wording.Say(wording.ForgetFactAsked, t.Lang, id)
		return wording.Say(wording.ForgetFact, t.Lang, id, headOf(fact.Content, quotedChars), memoryDay(fact.Memory, f.location), id)
	}
	m, done, err := f.manage.ForgetFact(ctx, f.roles.actor(t), id)
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
	f.refresh.resume(ctx, t, done.Lease)
	too := ""
	if more := receipt(done, t.Lang); more != "" {
		too = wording.Say(wording.ForgottenToo, t.Lang, more)
	}
	t.Kept = wording.Say(wording.ForgottenLog, t.Lang, id) + too // the answer must not repeat deleted text in the log
	return wording.Say(wording.Forgotten, t.Lang, headOf(m.Content, quotedChars)) + too
}

// deleted has singular and plural in en.
type deleted struct {
	n      int
	zh, en string
}

func receipt(done memory.Forgotten, lang string) string {
	return inWords(lang, []deleted{
		{max(0, done.Memories-1), "条说同一件事的记忆", "other memory of the same thing|other memories of the same thing"},
		{done.Messages, "条相关消息", "related message|related messages"},
		{done.Healed, "份摘要中的相关内容", "summary, where its lines are gone|summaries, where their lines are gone"},
		{done.Summaries, "份摘要（会用剩下的内容重写）", "summary, to be written again from what is left|summaries, to be written again from what is left"},
		{done.Blobs, "份存放的工具结果", "stored tool result|stored tool results"},
	})
}

func receiptOfPerson(done memory.Forgotten, lang string) string {
	return inWords(lang, []deleted{
		{done.Memories, "条记忆", "memory|memories"},
		{done.Messages, "条消息", "message|messages"},
		{done.Healed, "份摘要中的相关内容", "summary, where its lines are gone|summaries, where their lines are gone"},
		{done.Summaries, "份摘要（会用剩下的内容重写）", "summary, to be written again from what is left|summaries, to be written again from what is left"},
		{done.Blobs, "份存放的工具结果", "stored tool result|stored tool results"},
	})
}

func previewInWords(p memory.Preview, lang string) string {
	return inWords(lang, []deleted{
		{p.Messages, "条消息", "message|messages"},
		{p.Answers, "条我的回答", "answer of mine|answers of mine"},
		{p.Facts, "条记忆", "memory|memories"},
		{p.DigestLines, "行日报", "line of digests|lines of digests"},
		{p.Summaries, "份摘要（去掉其中的相关内容）", "summary, without the parts about it|summaries, without the parts about it"},
		{p.Usage, "行用量（去掉名字）", "row of usage, which loses the name|rows of usage, which lose the name"},
		{p.Schedules, "个提醒", "reminder|reminders"},
		{p.Files, "个记住的文件（别人发送的只去掉名字）", "kept file (one that others sent only loses the name)|kept files (those that others sent only lose the name)"},
		{p.Promotions, "条分享的记忆（去掉名字）", "shared memory, which loses the name|shared memories, which lose the name"},
		{p.Compactions, "次压缩或撤销记录（去掉名字）", "record of a compaction, which loses the name|records of compactions, which lose the name"},
		{p.IDs, "个加密编号", "encrypted id|encrypted ids"},
		{p.Logins, "次控制台登录", "login of the console|logins of the console"},
		{p.Private, "个私聊", "private chat|private chats"},
	})
}

func inWords(lang string, things []deleted) string {
	var parts []string
	for _, c := range things {
		one, many, _ := strings.Cut(c.en, "|")
		switch {
		case c.n == 0:
		case lang != "en":
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.zh))
		case c.n == 1:
			parts = append(parts, "1 "+one)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", c.n, many))
		}
	}
	if lang != "en" {
		return strings.Join(parts, "、")
	}
	return strings.Join(parts, "; ")
}
