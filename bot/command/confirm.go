package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/approval"
	"ebb/bot/parts"
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
	yesWords = []string{"yes", "y", "sure", "ok", "confirm", "confirmed", "确认", "确认删除", "确定", "確認", "確定", "是", "是的"}
	noWords  = []string{"no", "n", "not", "cancel", "stop", "不", "不要", "不用", "取消", "算了"}
	please   = []string{"please", "pls", "请", "吧", "！", "!"}
)

type answerTo int

const (
	answerNone answerTo = iota
	answerYes
	answerNo
)

// confirmations finds previews of erasures that a message confirms.
type confirmations struct {
	shared *parts.Shared
	views  *view.Builder
	table  Table
	erased memory.Erasures
	log    interface {
		Range(ctx context.Context, key sessions.Key, from, through int64, limit int) ([]sessions.Event, error)
	}
}

func confirmationsOf(e *env) confirmations {
	return confirmations{e.shared, e.views, e.table, e.opts.Erasures, e.stores.Log}
}

// rewrite makes the command of a bare yes or no behind a preview or a partial erasure. It reads the log, so that it works on every
// replica and after a restart.
func (c confirmations) rewrite(ctx context.Context, v *sessions.View) {
	ctx, stop := context.WithTimeout(ctx, c.shared.CommitTimeout)
	defer stop()
	for i := range v.Pending {
		e := &v.Pending[i]
		answer := yesOrNo(c.views.Words.OwnWords(*e))
		if e.IsScheduled() || answer == answerNone {
			continue
		}
		if who, lang, asked := c.unconfirmed(ctx, v.Session.Key, v.Tail, *e, true); asked {
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
func (c confirmations) unconfirmed(ctx context.Context, key sessions.Key, tail []sessions.Event, e sessions.Event, direct bool) (who, lang string, found bool) {
	limit := confirmEvents
	if direct {
		limit = confirmDirect
	}
	before, err := c.erased.MessagesBefore(ctx, key, e.SenderID, e.ID, limit)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to read the log for the command before")
	}
	for _, m := range before {
		outcome := outcomeOf(m)
		who, _ := c.table.forgetOf(c.views.Words.OwnWords(m))
		switch {
		case e.CreatedAt.Sub(m.CreatedAt) > confirmWithin:
			return "", "", false
		case m.IsScheduled():
		case outcome == sessions.HalfErased:
			e = m
		case outcome == sessions.Previewed && who != "":
			lang = cmp.Or(c.views.Words.LanguageWords(tail, m).Lang, c.shared.Languages.Preset)
			return who, lang, !direct || c.answeredBefore(ctx, m, e)
		case direct || who != "":
			return "", "", false
		}
	}
	return "", "", false
}

func (c confirmations) may(ctx context.Context, t *view.CommandTurn, who string, direct bool) bool {
	before, _, found := c.unconfirmed(ctx, t.Lease.Key, nil, t.Asked, direct)
	return found && strings.EqualFold(before, who)
}

func (c confirmations) answeredBefore(ctx context.Context, command, later sessions.Event) bool {
	reply, err := c.log.Range(ctx, command.Key, command.Seq, command.Seq+1, 1)
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

// The preview shows its word in quotes, and people repeat them, with marks behind.
const quotes = "\"'`“”‘’「」『』.!。！"

func yesOrNo(text string) answerTo {
	who, answer := forgetWords(forgetMe + " " + strings.Trim(strings.Map(narrowLetter, text), quotes))
	if who != forgetMe {
		return answerNone
	}
	return answer
}

func narrowLetter(r rune) rune {
	if r >= 'Ａ' && r <= 'Ｚ' || r >= 'ａ' && r <= 'ｚ' {
		return r - 0xfee0
	}
	return r
}

// factName is a fact as the argument of /forget.
func factName(id int64) string { return fmt.Sprintf("#%d", id) }

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

// isCommand is false for commands that keep a member's words, such as the text of a reminder: these can be erased and exported.
func isCommand(t Table, views *view.Builder, e sessions.Event) bool {
	if e.IsScheduled() {
		return false
	}
	c := t.Parse(views.Words.OwnWords(e))
	return c.Command != nil && (c.Use == nil || !c.Use.Keeps)
}

// The names of the commands that decide on calls of tools.
const (
	approveName = "approve"
	rejectName  = "reject"
)

// approveCommand is /approve and /reject. A turn that such a command decides goes another way; the command has the words for all others.
type approveCommand struct {
	roles roles
	views *view.Builder
	table Table
	desk  *approval.Desk
}

func approveOf(e *env) approveCommand {
	return approveCommand{e.roles(), e.views, e.table, e.opts.Approvals}
}

func isBare(arg string) bool { return trimMarks(arg) == "" }

// request reads a decision from a message of words or of a button, if its sender may use the command.
func (a approveCommand) request(e sessions.Event) (approval.Request, bool) {
	c := a.table.Parse(a.views.Words.OwnWords(e))
	if e.IsScheduled() || c.Use == nil || c.Name != approveName && c.Name != rejectName || !c.Use.takes(c.Arg) || !a.roles.may(e, a.roles.right(e.Key, c.Command, c.Use)) {
		return approval.Request{}, false
	}
	r := approval.Request{
		State: sessions.ApprovalApproved, ID: memoryID(c.Arg), Event: e.ID, At: e.CreatedAt, Person: e.SenderID, Admin: a.roles.isAdmin(e),
	}
	if c.Name == rejectName {
		r.State = sessions.ApprovalRejected
	}
	if e.IsPress() && e.Message.Press != nil {
		r.ID, r.Turn = 0, e.Message.Press.Turn
	}
	return r, true
}

// late answers a press that did nothing. It came too late, and has no answer, unless calls still wait: the card has lost its buttons.
func (a approveCommand) late(ctx context.Context, t *view.CommandTurn) string {
	r, ok := a.request(t.Asked)
	if !ok {
		return ""
	}
	text, over, err := a.desk.Refusal(ctx, t.Lease.Key, r, t.Lang)
	switch {
	case err != nil:
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to read waiting approvals")
		return wording.Say(wording.ApprovalFailed, t.Lang)
	case over:
		return ""
	}
	return text
}

// refusal answers a command that decided nothing.
func (a approveCommand) refusal(ctx context.Context, t *view.CommandTurn, _ Call) string {
	r, ok := a.request(t.Asked)
	if !ok {
		return wording.Say(wording.ApprovalOff, t.Lang)
	}
	text, _, err := a.desk.Refusal(ctx, t.Lease.Key, r, t.Lang)
	if err != nil || text == "" { // the call came after the decision
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to read waiting approvals")
		return wording.Say(wording.ApprovalFailed, t.Lang)
	}
	return text
}
