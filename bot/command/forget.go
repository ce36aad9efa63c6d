package command

import (
	"cmp"
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

// An irreversible command needs a confirmation within confirmWithin. The preview is looked up among the last
// confirmEvents of the sender, or confirmDirect if no other message may come between.
const (
	confirmWithin = 10 * time.Minute
	confirmEvents = 500
	confirmDirect = 10
)

var (
	yesWords = []string{"yes", "y", "sure", "ok", "confirm", "确认", "确定", "是", "是的"}
	noWords  = []string{"no", "n", "not", "cancel", "stop", "不", "不要", "不用", "取消", "算了"}
	please   = []string{"please", "pls", "请", "吧", "！", "!"}
)

type answerTo int

const (
	answerNone answerTo = iota
	answerYes
	answerNo
)

func erasedBefore(asked sessions.Event, lang string) string {
	if asked.SenderID == "" {
		return wording.Say(wording.ForgotBefore, lang)
	}
	return wording.Say(wording.ForgotLastBefore, lang)
}

func (h *Handler) forgetMe(ctx context.Context, t *view.CommandTurn, c Call) string {
	who, answer := forgetWords(c.Rest)
	switch {
	case answer == answerNo:
		return wording.Say(wording.ForgetNothing, t.Lang)
	case who != forgetMe:
		return c.Command.usage(t.Lang)
	}
	return h.forgetSomeone(ctx, t, who, answer, func() (memory.Person, string) { return memory.Person{ID: t.Asked.SenderID}, "" })
}

// forgetNumber is /forget #N. A number without the sign may be the staff id of a person.
func (h *Handler) forgetNumber(ctx context.Context, t *view.CommandTurn, c Call) string {
	who, answer := forgetWords(c.Rest)
	id := memoryID(who)
	switch {
	case answer == answerNo:
		return wording.Say(wording.ForgetNothing, t.Lang)
	case strings.HasPrefix(narrow(who), "#"):
		return h.forgetFact(ctx, t, id, answer)
	case !h.may(t.Asked, Admin):
		return wording.Say(wording.ForgetNumber, t.Lang, id, id)
	}
	return h.forgetNamed(ctx, t, c)
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

func (h *Handler) forgetNamed(ctx context.Context, t *view.CommandTurn, c Call) string {
	who, answer := forgetWords(c.Rest)
	if answer == answerNo {
		return wording.Say(wording.ForgetNothing, t.Lang)
	}
	return h.forgetSomeone(ctx, t, who, answer, func() (memory.Person, string) { return h.personNamed(ctx, t, who) })
}

// forgetSomeone previews an erasure, and executes it once it is confirmed. find is called after the check of the
// confirmation; its text is the answer if there is no such person.
func (h *Handler) forgetSomeone(ctx context.Context, t *view.CommandTurn, who string, answer answerTo, find func() (memory.Person, string)) string {
	sure := answer == answerYes
	switch {
	case h.opts.Rights == nil:
		return wording.Say(wording.NoRights, t.Lang)
	case t.Asked.SenderID == "":
		return wording.Say(wording.UnknownPerson, t.Lang)
	case sure && !h.mayConfirm(ctx, t, who, false):
		return wording.Say(wording.NotAsked, t.Lang)
	}
	p, why := find()
	switch {
	case why != "":
		return why
	case sure || h.mayConfirm(ctx, t, who, true): // repeated command
		return h.forgetPerson(ctx, t, p.ID)
	}
	return h.forgetPreview(ctx, t, p, who)
}

const maxTitles = 5

// forgetPreview asks for confirmation. In a group the preview has numbers only, and not the other groups of a person.
func (h *Handler) forgetPreview(ctx context.Context, t *view.CommandTurn, p memory.Person, who string) string {
	self := p.ID == t.Asked.SenderID
	a := h.actor(t)
	everywhere := a.Role == manage.Admin && watched(t, p.ID)
	if everywhere { // the group reads no figures of their other conversations
		a.Role = manage.GroupAdmin
	}
	found, err := h.manage.PreviewPerson(ctx, a, p.ID)
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
	return wording.Say(wording.ForgetWho, t.Lang, sessions.Speaker(p.Nick, p.ID), p.Last.In(h.shared.Location).Format("2006-01-02 15:04"), what,
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

// Confirmations rewrites a bare yes or no behind a preview or a partial erasure into the command. It reads the log, so
// that it works on every replica and after a restart.
func (h *Handler) Confirmations(ctx context.Context, v *sessions.View) {
	if h.opts.Rights == nil {
		return
	}
	ctx, stop := context.WithTimeout(ctx, h.shared.CommitTimeout)
	defer stop()
	for i := range v.Pending {
		e := &v.Pending[i]
		answer := yesOrNo(h.views.OwnWords(*e))
		if e.IsScheduled() || answer == answerNone {
			continue
		}
		if who, lang, asked := h.unconfirmed(ctx, v.Session.Key, v.Tail, *e, true); asked {
			e.Content = answered[lang][0] + who + answered[lang][answer]
		}
	}
}

// answered holds the parts of a confirmed command, in the language of the preview.
var answered = map[string][3]string{
	"zh": {"/忘记 ", answerYes: " 确认", answerNo: " 取消"},
	"en": {"/forget ", answerYes: " yes", answerNo: " no"},
}

// unconfirmed finds the erasure that a message's sender may confirm. The preview was answered shortly before the
// message, or before another confirmation with a partial erasure. If direct is set, the sender sent no message in
// between, and the confirmation followed the preview's answer.
func (h *Handler) unconfirmed(ctx context.Context, key sessions.Key, tail []sessions.Event, e sessions.Event, direct bool) (who, lang string, found bool) {
	limit := confirmEvents
	if direct {
		limit = confirmDirect
	}
	before, err := h.opts.Rights.MessagesBefore(ctx, key, e.SenderID, e.ID, limit)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to read the log for the command before")
	}
	for _, m := range before {
		outcome := outcomeOf(m)
		who, _ := h.commands.forgetOf(h.views.OwnWords(m))
		switch {
		case e.CreatedAt.Sub(m.CreatedAt) > confirmWithin:
			return "", "", false
		case m.IsScheduled():
		case outcome == sessions.HalfErased:
			e = m
		case outcome == sessions.Previewed && who != "":
			lang = cmp.Or(h.views.LanguageWords(tail, m).Lang, h.shared.Languages.Preset)
			return who, lang, !direct || h.answeredBefore(ctx, m, e)
		case direct || who != "":
			return "", "", false
		}
	}
	return "", "", false
}

func (h *Handler) mayConfirm(ctx context.Context, t *view.CommandTurn, who string, direct bool) bool {
	before, _, found := h.unconfirmed(ctx, t.Lease.Key, nil, t.Asked, direct)
	return found && strings.EqualFold(before, who)
}

func (h *Handler) answeredBefore(ctx context.Context, command, later sessions.Event) bool {
	reply, err := h.memory.Range(ctx, command.Key, command.Seq, command.Seq+1, 1)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to read the log for the preview")
	}
	return len(reply) == 1 && !reply[0].CreatedAt.After(later.CreatedAt)
}

func outcomeOf(e sessions.Event) sessions.Outcome {
	if e.Message == nil {
		return ""
	}
	return e.Message.Outcome
}

// IsYesOrNo reports whether a text is a bare yes or no, as behind a preview.
func (t Table) IsYesOrNo(text string) bool { return yesOrNo(text) != answerNone }

func yesOrNo(text string) answerTo {
	who, answer := forgetWords(forgetMe + " " + text)
	if who != forgetMe {
		return answerNone
	}
	return answer
}

// forgetOf names a fact as [factName] does, whatever the command says.
func (t Table) forgetOf(text string) (who string, answer answerTo) {
	c := t.Parse(text)
	switch {
	case c.Use == nil:
		return "", answerNone
	case c.Name == "memory" && slices.Contains(c.Use.EN, "forget") && c.Use.takes(c.Arg):
		return factName(memoryID(c.Arg)), answerNone
	case c.Name != "forget":
		return "", answerNone
	}
	who, answer = forgetWords(c.Rest)
	if id := memoryID(who); id > 0 && strings.HasPrefix(narrow(who), "#") {
		who = factName(id)
	}
	return who, answer
}

const (
	forgetMe   = "me"
	forgetLast = "last"
)

// forgetWords splits a person from a confirmation behind the name. Words of politeness and marks go first: "忘记我 谢谢！" means the same
// as "忘记我".
func forgetWords(rest string) (who string, answer answerTo) {
	words := strings.Fields(rest)
	trim := func(set []string) bool {
		n := len(words)
		if n < 2 || !slices.Contains(set, strings.ToLower(strings.TrimRight(words[n-1], ".!。！,，"))) && !slices.Contains(set, words[n-1]) {
			return false
		}
		words = words[:n-1]
		return true
	}
	for trim(please) {
	}
	switch {
	case trim(yesWords):
		answer = answerYes
	case trim(noWords):
		answer = answerNo
	}
	who = strings.Replace(strings.Join(words, " "), "＠", "@", 1)
	switch strings.ToLower(strings.TrimRight(who, ",.!，。！")) {
	case forgetMe, "我":
		who = forgetMe
	case forgetLast, "上一条", "刚才", "刚才那条":
		who = forgetLast
	}
	return who, answer
}

// forgetLast erases without a confirmation: a password that went out by mistake can't wait for one. The answer names time and length
// and not the words, which it would show once more.
func (h *Handler) forgetLast(ctx context.Context, t *view.CommandTurn, c Call) string {
	asked := t.Asked
	who, answer := forgetWords(c.Rest)
	switch {
	case answer == answerNo:
		return wording.Say(wording.ForgetNothing, t.Lang)
	case who != forgetLast:
		return c.Command.usage(t.Lang)
	case h.opts.Rights == nil:
		return wording.Say(wording.NoRights, t.Lang)
	case asked.SenderID == "":
		return wording.Say(wording.UnknownPerson, t.Lang)
	}
	e, done, err := h.manage.ForgetLast(ctx, h.actor(t), func(e sessions.Event) bool { return e.IsScheduled() || isEmpty(e) || h.isCommand(e) })
	switch {
	case errors.Is(err, sessions.ErrNotFound) && e.ID == 0:
		return wording.Say(wording.NoLast, t.Lang)
	case err != nil:
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to erase a message")
		return wording.Say(wording.NoRights, t.Lang)
	}
	h.resumeTurn(ctx, t, done.Lease)
	length := "" // distinguishes messages of one minute; the words would be kept, and shown once more
	if n := utf8.RuneCountInString(h.views.OwnWords(e)); n > 0 {
		length = wording.Say(wording.ForgotLength, t.Lang, n)
	}
	return wording.Say(wording.ForgotLast, t.Lang, e.CreatedAt.In(h.shared.Location).Format("01-02 15:04"), length, receiptOfPerson(done, t.Lang))
}

// isCommand is false for commands that keep a member's words, such as the text of a reminder: these can be erased and exported.
func (h *Handler) isCommand(e sessions.Event) bool {
	if e.IsScheduled() {
		return false
	}
	c := h.commands.Parse(h.views.OwnWords(e))
	return c.Command != nil && (c.Use == nil || !c.Use.Keeps)
}

func isEmpty(e sessions.Event) bool {
	return e.Content == "" && (e.Message == nil || e.Message.Quote == nil && len(e.Message.Attachments) == 0)
}

func (h *Handler) personNamed(ctx context.Context, t *view.CommandTurn, name string) (_ memory.Person, why string) {
	p, err := h.manage.FindPerson(ctx, h.actor(t), strings.TrimPrefix(name, "@"))
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

// forgetPerson writes no name into a person's own receipt, because a reply is stored too.
func (h *Handler) forgetPerson(ctx context.Context, t *view.CommandTurn, who sessions.UserID) string {
	self := who == t.Asked.SenderID
	a, here := h.actor(t), watched(t, who)
	done, err := h.manage.ForgetPerson(ctx, a, who)
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
	h.resumeTurn(ctx, t, done.Lease)
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
