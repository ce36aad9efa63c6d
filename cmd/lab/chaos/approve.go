package chaos

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/openai/openaitest"
	"ebb/cmd/lab/rig"
	"ebb/sessions"
	"ebb/sql/inspect"
)

const (
	signTool     = "sign"           // needs an approval
	approvalTime = 12 * time.Second // after which a call expires
	expiryRoom   = 15 * time.Second // for the leader to end a wait
)

// approvalNumber finds the numbers in a request for approval.
var approvalNumber = regexp.MustCompile(`(?:等待批准|Waiting for approval) #(\d+)`)

// decisions are what members do about a call that waits.
var decisions = []func(d decision){
	func(d decision) { d.command(d.asker, "/approve %d") },
	func(d decision) { d.command(d.asker, "/拒绝 %d") },
	func(d decision) { d.admin("approve", "/同意 %d") },
	func(d decision) { d.admin("reject", "/reject %d") },
	func(d decision) { // a stranger first, who has no right
		d.command(d.stranger(), "/approve %d")
		d.click(d.stranger(), "approve", 1)
		d.command(d.asker, "/reject %d")
	},
	func(d decision) { d.command(d.stranger(), "/approve %d"); d.click(d.stranger(), "approve", 2) },
	func(d decision) { // both at once
		d.command(d.asker, "/approve %d")
		d.command(d.asker, "/reject %d")
		d.admin("reject", "/reject %d")
	},
	func(d decision) { d.click(d.asker, "reject", 2); d.command(d.asker, "/approve %d") },
	func(d decision) { d.click(d.asker, "approve", 2); d.click(d.asker, "approve", 1) },
	func(d decision) { d.command(d.asker, "/approve %d"); d.command(d.asker, "/approve %d") },
	func(decision) {}, // none: it expires
}

// decision is one call that waits.
type decision struct {
	injector
	ctx    context.Context
	asker  rig.Person
	group  string
	word   string
	number int64
}

func (d decision) stranger() rig.Person { return d.erasures.newPerson() }

func (d decision) command(who rig.Person, format string) {
	d.talk.sayAs(who, d.group, func(*remark) string { return fmt.Sprintf(format, d.number) }, commandOf(nil))
}

// admin decides by a command, or by a button where the command would be about the administrator's own session.
func (d decision) admin(button, command string) {
	if d.perMember() {
		d.click(chaosAdmin, button, 1)
		return
	}
	d.command(chaosAdmin, command)
}

// click presses a button on the card with the request. A lost answer is part of the faults.
func (d decision) click(who rig.Person, button string, copies int) {
	ctx, stop := context.WithTimeout(d.ctx, clickPatience)
	defer stop()
	cards := d.sim.Cards(d.group)
	at := slices.IndexFunc(cards, func(c dingtalktest.Card) bool { return strings.Contains(c.Content, d.word) })
	if at >= 0 {
		_, _ = d.sim.ClickCard(ctx, dingtalktest.CardClick{TrackID: cards[at].TrackID, UserID: who.ID, Action: button, Copies: copies})
	}
}

// askApproval has a new member of a group ask for a call that needs an approval, and members decide on it.
func askApproval(w injector, ctx context.Context, t fault) error {
	d := decision{injector: w, asker: w.erasures.newPerson(), group: w.talk.pickGroup(t.n)}
	how := []string{"ok", "slow"}[t.n%2]
	d.talk.sayAs(d.asker, d.group, func(u *remark) string {
		d.word = "T" + u.mark[2:]
		u.wants = wantedCall{word: d.word, server: sound, how: how, signs: true}
		return u.mark + " " + u.wants.request(signTool)
	}, nil)
	w.erasures.runScript(ctx, func(ctx context.Context) error {
		d.ctx = ctx
		if d.number = d.awaitRequest(); d.number > 0 {
			decisions[t.n/2%len(decisions)](d)
		}
		return nil
	}, func(err error) { w.addBroken("approval: %v", err) })
	return nil
}

// awaitRequest returns the number of the call; 0 if no request comes, since the model failed.
func (d decision) awaitRequest() int64 {
	ctx, stop := context.WithTimeout(d.ctx, answerWait)
	defer stop()
	r, err := d.sim.WaitReplyAfter(ctx, d.group, d.word, 0)
	if err != nil {
		return 0
	}
	before, _, _ := strings.Cut(r.Text, d.word)
	numbers := approvalNumber.FindAllStringSubmatch(before, -1)
	if len(numbers) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(numbers[len(numbers)-1][1], 10, 64) // digits
	return n
}

// noteIllegal notes the faults of a request that a provider would refuse.
func (m *chaosModel) noteIllegal(r openaitest.Request, found []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range found {
		if one = fmt.Sprintf("a request of %s: %s", r.Kind, one); len(m.illegal) < maxBroken && !slices.Contains(m.illegal, one) {
			m.illegal = append(m.illegal, one)
		}
	}
}

func (m *chaosModel) copyIllegal() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.illegal)
}

// endWords find the reply with the decision on a call, or with the end of its wait.
var endWords = map[sessions.ApprovalState]string{
	sessions.ApprovalApproved: `(同意了|approved) #%d `, sessions.ApprovalRejected: `(拒绝了|rejected) #%d `, sessions.ApprovalExpired: `⌛ .*#%d `,
}

// checkApprovals: a call runs after its approval, at most once, and never without one. The asker or an administrator decides, once: one reply
// says so. A wait ends. Each request to the model is legal.
func (e *evidence) checkApprovals(f *findings) {
	for _, one := range e.illegal {
		f.addBroken("illegal request: %s", one)
	}
	ran := map[string]time.Time{} // first
	for _, x := range e.effects {
		if ran[x.word].IsZero() || x.at.Before(ran[x.word]) {
			ran[x.word] = x.at
		}
	}
	dead, signed := e.setAside(), map[string]bool{}
	for _, a := range e.approvals {
		word := toolWord.FindString(a.Arguments)
		at := ran[word]
		signed[word] = true
		switch a.State {
		case sessions.ApprovalApproved:
			f.approved++
		case sessions.ApprovalRejected:
			f.rejected++
		case sessions.ApprovalExpired:
			f.expired++
		}
		switch decided := a.State == sessions.ApprovalApproved || a.State == sessions.ApprovalRejected; {
		case a.State != sessions.ApprovalApproved && !at.IsZero():
			f.addBroken("call %s (#%d of session %s) is %s, and it ran", word, a.ID, a.Key, a.State)
		case !at.IsZero() && at.Before(a.DecidedAt):
			f.addBroken("call %s (#%d of session %s) ran %s before its approval", word, a.ID, a.Key, a.DecidedAt.Sub(at))
		case decided && !e.mayDecide(a, word):
			f.addBroken("call %s (#%d of session %s) was decided by %s, who has no right", word, a.ID, a.Key, a.DecidedBy)
		case a.State == sessions.ApprovalWaiting && a.CreatedAt.Add(approvalTime+expiryRoom).Before(e.ended):
			f.addBroken("call %s (#%d of session %s) still waits", word, a.ID, a.Key)
		}
		if words, over := endWords[a.State]; over {
			n, wiped := e.countReplies(a.Key, regexp.MustCompile(fmt.Sprintf(words, a.ID)))
			if n > 1 || n == 0 && !wiped && len(dead[a.Key]) == 0 {
				f.addBroken("call %s (#%d of session %s) is %s, and %d replies say so", word, a.ID, a.Key, a.State, n)
			}
		}
	}
	for _, u := range e.said {
		if w := u.wants; w.signs && !ran[w.word].IsZero() && !signed[w.word] {
			f.addBroken("call %s needs an approval, and it ran without a request for one", w.word)
		}
	}
}

// mayDecide reports whether the decision on a call was made by an administrator, or by one of those whose messages its turn answered.
func (e *evidence) mayDecide(a sessions.Approval, word string) bool {
	if a.DecidedBy == a.AskedBy || string(a.DecidedBy) == chaosAdmin.ID {
		return true
	}
	return slices.ContainsFunc(turnsOf(e.log), func(t loggedTurn) bool {
		if t.key != a.Key || !slices.ContainsFunc(t.asked, func(mark string) bool { return e.said[mark].wants.word == word }) {
			return false
		}
		return slices.ContainsFunc(t.asked, func(mark string) bool { return e.said[mark].who == string(a.DecidedBy) })
	})
}

// isDecision finds presses of buttons that decide.
func isDecision(l inspect.Logged) bool { return decisionIDs.MatchString(string(l.MsgID)) }

var decisionIDs = regexp.MustCompile(`^(approve|reject)-`)

// dropSilent removes the presses that came after the decision: they have no answer.
func (e *evidence) dropSilent() {
	kept := e.log[:0:0]
	for i, l := range e.log {
		last := i+1 == len(e.log) || e.log[i+1].Key != l.Key
		if isDecision(l) && l.Seq != 0 && (last || e.log[i+1].Role == sessions.RoleUser) {
			continue
		}
		kept = append(kept, l)
	}
	e.log = kept
}

// countReplies counts the replies of a session that match, and reports whether one was erased.
func (e *evidence) countReplies(key sessions.Key, words *regexp.Regexp) (n int, wiped bool) {
	for _, l := range e.letters {
		switch {
		case l.Key != key:
		case isWiped(l.Text):
			wiped = true
		case words.MatchString(l.Text):
			n++
		}
	}
	return n, wiped
}
