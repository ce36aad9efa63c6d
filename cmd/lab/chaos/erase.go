package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/cmd/lab/rig"
	"ebb/sessions"
)

func (e *erasures) runScript(ctx context.Context, script func(context.Context) error, failed func(error)) {
	e.mu.Lock()
	e.open++
	e.mu.Unlock()
	e.running.Go(func() {
		err := script(ctx)
		e.mu.Lock()
		e.open--
		e.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			failed(err)
		}
	})
}

func (e *erasures) countOpen() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open
}

func (e *erasures) beginRequest(x erasure) *erasure {
	e.mu.Lock()
	defer e.mu.Unlock()
	x.begun = time.Now()
	e.all = append(e.all, &x)
	return &x
}

func (e *erasures) endRequest(x *erasure, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x.receipt = at
}

// cancelRequest takes back a request that erased nothing.
func (e *erasures) cancelRequest(x *erasure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = slices.DeleteFunc(e.all, func(y *erasure) bool { return x == y })
}

func (e *erasures) newPerson() rig.Person {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.people++
	return rig.Person{ID: fmt.Sprintf("u-script-%04d", e.people), Name: fmt.Sprintf("访客%04d", e.people)}
}

func (e *erasures) copyAll() []erasure {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]erasure, 0, len(e.all))
	for _, x := range e.all {
		out = append(out, *x)
	}
	return out
}

// recordReply records a reply before the receipt.
func (e *erasures) recordReply(x *erasure, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x.heard = text
}

func (e *erasures) deletesThread(key sessions.Key) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.all, func(x *erasure) bool { return slices.Contains(x.gone, threadIn(key)) })
}

// answerWait bounds the wait for an answer that may not name its message: the model may have failed.
const answerWait = 10 * time.Second

// factWords is the number of a fact, which no two messages share.
var factWords = regexp.MustCompile(`K\d{6}`)

// eraseLast has a new member of a group send two messages and take back the second.
func (w injector) eraseLast(ctx context.Context, t fault) error {
	who, group := w.erasures.newPerson(), w.talk.pickGroup(t.n)
	w.erasures.runScript(ctx, func(ctx context.Context) error {
		first := w.talk.sayAs(who, group, talkText, nil)
		w.awaitAnswer(ctx, group, first)
		var word string
		mark := w.talk.sayAs(who, group, func(u *remark) string { word = u.factNumber(); return u.factText() }, func(u *remark) { u.wiped = true })
		w.awaitAnswer(ctx, group, mark)
		if err := w.awaitStored(ctx, mark); err != nil {
			return err
		}
		x := w.erasures.beginRequest(erasure{kind: "forget last", words: []string{word}, touched: []string{group}})
		again := func() (dingtalktest.Reply, error) { // a repeated command erases the first, where the one before came through
			w.talk.markWiped(first)
			return dingtalktest.Reply{}, nil
		}
		return w.runErasure(ctx, x, eraseRequest{who: who, place: group, command: "/忘记上一条", again: again})
	}, func(err error) { w.addBroken("forget last: %v", err) })
	return nil
}

// erasePerson has a new person speak in a group and in private, and then ask to be forgotten. Another message arrives
// meanwhile.
func (w injector) erasePerson(ctx context.Context, t fault) error {
	who, group := w.erasures.newPerson(), w.talk.pickGroup(t.n)
	private := dingtalktest.DirectConversation(who.ID)
	w.erasures.runScript(ctx, func(ctx context.Context) error {
		var words []string
		note := func(u *remark) string { words = append(words, u.factNumber()); return u.factText() }
		wiped := func(u *remark) { u.wiped, u.gone = true, true }
		inGroup := w.talk.sayAs(who, group, note, wiped)
		inPrivate := w.talk.sayAs(who, private, note, wiped)
		w.awaitAnswer(ctx, group, inGroup)
		w.awaitAnswer(ctx, private, inPrivate)
		for i, place := range []string{group, private} { // due before the receipt, or after it
			x := w.reminders.request(w.talk, who, place, time.Duration(2+(t.n+i)%longestDelay)*time.Second, time.Time{}, wiped)
			words = append(words, x.word)
			w.awaitAnswer(ctx, place, x.word)
			if err := w.awaitStored(ctx, x.mark); err != nil {
				return err
			}
		}
		if err := errors.Join(w.awaitStored(ctx, inGroup), w.awaitStored(ctx, inPrivate)); err != nil {
			return err
		}
		ask := eraseRequest{who: who, place: private, command: "/忘记我", want: erasurePreview, change: wiped}
		if _, err := w.askFor(ctx, ask, func(string) {}); err != nil {
			return err
		}
		x := w.erasures.beginRequest(erasure{
			kind: "forget me", words: words, touched: []string{group, private}, gone: []string{private, group + " " + who.ID},
		})
		if t.n%2 == 0 { // it is answered, or erased with the rest
			time.AfterFunc(t.d/20, func() { w.talk.sayAs(who, private, talkText, wiped) })
		}
		return w.confirmErasure(ctx, x, ask)
	}, func(err error) { w.addBroken("forget me: %v", err) })
	return nil
}

// confirmErasure confirms a requested erasure. It starts again after an erasure that was not done.
func (w injector) confirmErasure(ctx context.Context, x *erasure, ask eraseRequest) error {
	confirm := ask
	confirm.command += " 确认"
	ask.want = previewOrReceipt
	confirm.again = func() (dingtalktest.Reply, error) {
		return w.askFor(ctx, ask, func(text string) { w.erasures.recordReply(x, text) })
	}
	return w.runErasure(ctx, x, confirm)
}

type eraseRequest struct {
	who            rig.Person
	place, command string
	want           *regexp.Regexp
	change         func(*remark) // result of the command
	// again is called before the command is repeated. It ends the request by a wanted reply.
	again func() (dingtalktest.Reply, error)
}

// Replies to commands that erase.
var (
	erasurePreview = regexp.MustCompile(`回复“确认”`)
	erasureReceipt = regexp.MustCompile(`已(经|全部)?删除`)
	// previewOrReceipt is the reply to a repeated first command: after a half-done erasure it counts as a
	// confirmation.
	previewOrReceipt = regexp.MustCompile(erasurePreview.String() + `|` + erasureReceipt.String())
	sayAgain         = regexp.MustCompile(`请稍后再|还没有全部删完|没有等待确认|已放在一边`) // to send it again, later or from its beginning
)

func (w injector) runErasure(ctx context.Context, x *erasure, ask eraseRequest) error {
	ask.want = erasureReceipt
	r, err := w.askFor(ctx, ask, func(text string) { w.erasures.recordReply(x, text) })
	if err == nil {
		w.erasures.endRequest(x, r.Time)
	}
	return err
}

// askFor repeats a command until the wanted reply comes: storage trouble is answered with a request to try again.
// Other replies to the person are passed to heard.
func (w injector) askFor(ctx context.Context, ask eraseRequest, heard func(string)) (dingtalktest.Reply, error) {
	private := ask.place == dingtalktest.DirectConversation(ask.who.ID)
	for {
		seen := len(w.sim.Replies(ask.place))
		w.talk.sayAs(ask.who, ask.place, func(*remark) string { return ask.command }, commandOf(ask.change))
		for again := false; !again; {
			r, err := w.sim.WaitReplyAfter(ctx, ask.place, "", seen)
			if err != nil {
				return r, fmt.Errorf("no reply with %q to %s of %s: %w", ask.want, ask.command, ask.who.Name, err)
			}
			seen++
			// A reply by the open API has the person's name in place of a mention.
			if !private && !strings.Contains(r.Text, ask.who.ID) && !strings.Contains(r.Text, ask.who.Name) {
				continue
			}
			if ask.want.MatchString(r.Text) {
				return r, nil
			}
			again = sayAgain.MatchString(r.Text)
			heard(r.Text)
		}
		if !rig.WaitUntil(ctx, time.Now().Add(500*time.Millisecond)) {
			return dingtalktest.Reply{}, context.Cause(ctx)
		}
		if ask.again != nil {
			if r, err := ask.again(); err != nil || ask.want.MatchString(r.Text) {
				return r, err
			}
		}
	}
}

// awaitStored waits for the acknowledgement: a command that overtakes a message concerns another one.
func (w injector) awaitStored(ctx context.Context, mark string) error {
	for !w.talk.isAcked(mark) {
		if !rig.WaitUntil(ctx, time.Now().Add(50*time.Millisecond)) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// awaitAnswer waits at most answerWait.
func (w injector) awaitAnswer(ctx context.Context, place, mark string) {
	one, stop := context.WithTimeout(ctx, answerWait)
	defer stop()
	_, _ = w.sim.WaitReplyAfter(one, place, mark, 0) // a model that fails names none
}

// eraseFact forgets a new fact: by an operator's command line, or by its author.
func (w injector) eraseFact(ctx context.Context, t fault) error {
	w.erasures.runScript(ctx, func(ctx context.Context) error {
		all, err := w.listFacts(ctx)
		if err != nil || len(all) == 0 {
			return err
		}
		m := all[t.n%len(all)]
		word := factWords.FindString(m.Content)
		u, known := w.talk.markWiped("q0" + word[1:])
		if !known {
			return fmt.Errorf("memory %d has a number that no message said: %s", m.ID, word)
		}
		x := w.erasures.beginRequest(erasure{kind: "forget fact", words: []string{word}, touched: []string{u.place}})
		if i := slices.IndexFunc(chaosPeople, func(p rig.Person) bool { return p.ID == string(m.SaidBy) }); t.n%3 == 0 && i >= 0 {
			return w.forgetByMember(ctx, x, m, chaosPeople[i], u.place)
		}
		return w.forgetByOperator(ctx, x, m.ID)
	}, func(err error) { w.addBroken("forget fact: %v", err) })
	return nil
}

func (w injector) forgetByMember(ctx context.Context, x *erasure, m listedFact, who rig.Person, place string) error {
	number := fmt.Sprintf("编号 %d", m.ID)
	r, err := w.askFor(ctx, eraseRequest{
		who: who, place: place, command: fmt.Sprintf("/记忆 忘记 %d", m.ID),
		want: regexp.MustCompile("已删除[^\n]*" + x.words[0] + "|" + number),
	}, func(text string) { w.erasures.recordReply(x, text) })
	switch {
	case err != nil:
		return err
	case strings.Contains(r.Text, "已删除"):
		w.erasures.endRequest(x, r.Time)
	default:
		w.erasures.cancelRequest(x) // another erasure came first, or it is not theirs here
	}
	return nil
}

// forgetByOperator repeats the command while the database is in trouble.
func (w injector) forgetByOperator(ctx context.Context, x *erasure, id int64) error {
	for again := false; ; again = true {
		out, err := w.runBot(ctx, "memory", "forget", strconv.FormatInt(id, 10), "--yes")
		missing := strings.Contains(out, "there is no memory")
		switch {
		case err == nil, again && missing: // the attempt before may have succeeded
			w.erasures.endRequest(x, time.Now())
			return nil
		case missing:
			w.erasures.cancelRequest(x)
			return nil
		}
		if !rig.WaitUntil(ctx, time.Now().Add(500*time.Millisecond)) {
			return fmt.Errorf("forget memory %d: %w: %s", id, err, out)
		}
	}
}

// listedFact is a part of a line of bot memory list --json.
type listedFact struct {
	ID      int64           `json:"id"`
	Content string          `json:"content"`
	SaidBy  sessions.UserID `json:"said_by"`
}

// listFacts lists the newest facts with a number; none while the database is in trouble.
func (w injector) listFacts(ctx context.Context) ([]listedFact, error) {
	out, err := w.runBot(ctx, "memory", "list", "--json", "--limit", "40")
	if err != nil {
		return nil, nil //nolint:nilerr // the database is in trouble
	}
	var all []listedFact
	for in := bufio.NewScanner(strings.NewReader(out)); in.Scan(); {
		var m listedFact
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			return nil, fmt.Errorf("reading the list of memories: %w", err)
		}
		if factWords.MatchString(m.Content) {
			all = append(all, m)
		}
	}
	return all, nil
}

const operatorTimeout = 20 * time.Second

// runBot runs a command on the database and returns its output.
func (w injector) runBot(ctx context.Context, args ...string) (string, error) {
	config, err := w.gatewayConfig("operator", w.databaseURL())
	if err != nil {
		return "", err
	}
	ctx, stop := context.WithTimeout(ctx, operatorTimeout)
	defer stop()
	cmd := exec.CommandContext(ctx, w.program, append(args, "--config", config)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return errs.String(), err
	}
	return out.String(), err
}

// sayAs sends one text of a script. change marks its record.
func (t *talkers) sayAs(who rig.Person, place string, text func(*remark) string, change func(*remark)) string {
	said := ""
	return t.sendAs(who, place, func(u *remark) {
		said = text(u)
		if change != nil {
			change(u)
		}
	}, func(string) dingtalktest.Message { return dingtalktest.Text(said) })
}

// sendAs sends one message of a script. draw sets its record. make gets its mark, and may call the simulator: the lock is not held then, because
// the simulator holds its own while it reports to noteEntry.
func (t *talkers) sendAs(who rig.Person, place string, draw func(*remark), make func(mark string) dingtalktest.Message) string {
	private := place == dingtalktest.DirectConversation(who.ID)
	t.mu.Lock()
	u := &remark{mark: fmt.Sprintf("q%07d", len(t.order)+1), who: who.ID, place: place, thread: place, sent: time.Now()}
	if t.member && !private {
		u.thread += " " + who.ID
	}
	draw(u)
	t.said[u.mark], t.order = u, append(t.order, u.mark)
	t.open++
	t.mu.Unlock()
	m := make(u.mark)
	m.MsgID, m.Sender, m.SenderNick, m.Direct = u.mark, who.ID, who.Name, private
	if !private {
		m.Conversation = place
	}
	t.sim.Say(m)
	return u.mark
}

func (t *talkers) isAcked(mark string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.said[mark].acked.IsZero()
}

// markWiped allows the erasure of a message from now on, and returns it.
func (t *talkers) markWiped(mark string) (remark, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.said[mark]
	if u == nil {
		return remark{}, false
	}
	u.wiped = true
	return *u, true
}

func (t *talkers) pickGroup(n int) string {
	groups := chaosConversations
	if t.member {
		groups = chaosMemberGroups
	}
	return fmt.Sprintf(groupPrefix+"%02d", n%groups)
}

func commandOf(change func(*remark)) func(*remark) {
	return func(u *remark) {
		u.command = true
		if change != nil {
			change(u)
		}
	}
}

func talkText(u *remark) string {
	return u.mark + " 请问发布窗口和回滚负责人是谁？压测报告放在哪里了"
}

// factNumber is the number of the fact that a message may have.
func (u *remark) factNumber() string { return "K" + u.mark[2:] }

func (u *remark) factText() string {
	n, _ := strconv.Atoi(u.mark[1:]) // digits
	u.fact = fmt.Sprintf("编号%s的%s在%s%s", u.factNumber(), chaosThings[n%11], chaosPlaces[n%9], chaosDeeds[n%7])
	return u.mark + " 通知大家，" + u.fact + "。"
}

// threadIn is the conversation of a session, or one member of it.
func threadIn(key sessions.Key) string {
	_, conversation := key.Conversation()
	if parts := strings.SplitN(string(key), "/", 3); len(parts) == 3 {
		return string(conversation) + " " + parts[2]
	}
	return string(conversation)
}
