package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
)

// person is the staff id behind a name in a scenario.
func (w *world) person(nick string) string {
	id := w.people[nick]
	if id == "" {
		id = fmt.Sprintf("staff%02d", len(w.people)+1)
		w.people[nick] = id
		w.ding.AddUser(dingtalktest.User{StaffID: id, Nick: nick})
	}
	return id
}

// conversation is the id of a group, which is its name, or of the private chat with a person, who stands behind an @.
func (w *world) conversation(name string) string {
	if nick, ok := strings.CutPrefix(name, "@"); ok {
		return dingtalktest.DirectConversation(w.person(nick))
	}
	return name
}

func (w *world) cmdAdmin(args []string) error {
	w.ding.AddUser(dingtalktest.User{StaffID: w.person(args[0]), Nick: args[0], Admin: true})
	return nil
}

func (w *world) cmdGroup(args []string) error {
	w.ding.AddGroup(dingtalktest.Group{ID: args[0], Robots: args[1:]})
	return nil
}

// scriptRobot is the code of an application by its number.
func scriptRobot(number string) string { return "dingsimapp000" + number }

func (w *world) cmdAsk(args []string) error {
	m := dingtalktest.Message{Conversation: args[1], Sender: w.person(args[2]), MsgID: args[3], Text: args[4]}
	if strings.HasPrefix(args[1], "@") {
		m.Conversation, m.Direct = "", true
	}
	for number := range strings.SplitSeq(args[0], ",") {
		m.Robots = append(m.Robots, scriptRobot(number))
	}
	w.ding.Say(m)
	return nil
}

func (w *world) cmdRobot(args []string) error {
	return w.until(fmt.Sprintf("a reply of bot %s to %s with %q", args[2], args[0], args[1]), patience, func() (bool, string) {
		return w.hasReplyOf(args), w.repliesIn(args[0])
	})
}

func (w *world) cmdNotRobot(args []string) error {
	if w.hasReplyOf(args) {
		return fmt.Errorf("bot %s replied %q", args[2], args[1])
	}
	return nil
}

func (w *world) hasReplyOf(args []string) bool {
	return slices.ContainsFunc(w.ding.Replies(w.conversation(args[0])), func(r dingtalktest.Reply) bool {
		return hasWord(r.Text, args[1]) && r.RobotCode == scriptRobot(args[2])
	})
}

func (w *world) cmdSay(args []string) error {
	w.ding.Say(dingtalktest.Message{Conversation: args[0], Sender: w.person(args[1]), MsgID: args[2], Text: args[3]})
	return nil
}

// cmdUnstaffed is a message whose frame has no staff id; a foreign one is from a member of another organisation.
func (w *world) cmdUnstaffed(args []string) error {
	m := dingtalktest.Message{Conversation: args[0], Sender: w.person(args[1]), MsgID: args[2], Text: args[3], Omit: []string{"senderStaffId"}}
	if len(args) > 4 {
		m.Set = map[string]any{"senderCorpId": args[4]}
	}
	w.ding.Say(m)
	return nil
}

// cmdPeer is: CONV NICK N. Another bot, which has no staff id, answers each reply of ours. The exchange ends after N replies.
func (w *world) cmdPeer(args []string) error {
	want, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	for said, seen := 0, -1; ; said++ {
		replies := len(w.ding.Replies(w.conversation(args[0])))
		switch {
		case replies == seen && replies == want:
			return nil
		case replies == seen || replies > want:
			return fmt.Errorf("the exchange ended after %d replies, want %d", replies, want)
		}
		seen = replies
		id := fmt.Sprintf("peer-%s-%d", args[0], said)
		if err := w.cmdUnstaffed([]string{args[0], args[1], id, fmt.Sprintf("Q%d 收到，继续", 7000+said)}); err != nil {
			return err
		}
		if err := w.cmdAcked([]string{id}); err != nil {
			return err
		}
		if err := w.settle(); err != nil {
			return err
		}
	}
}

// cmdQuote is a message that replies to another: a person's by its id and words, a bare id, a picture, or a reply or a card of the bot.
func (w *world) cmdQuote(args []string) error {
	m := dingtalktest.Message{Conversation: args[0], Sender: w.person(args[1]), MsgID: args[2], Text: args[3]}
	switch kind, what := args[4], args[5]; kind {
	case "id":
		m.Quote = dingtalktest.QuoteID(what)
	case "picture":
		m.Quote = dingtalktest.QuoteMedia("picture", what, "dc", "")
	case "reply":
		r, ok := w.find(args[0], what)
		if !ok {
			return fmt.Errorf("no reply to %s has %q", args[0], what)
		}
		m.Quote = dingtalktest.QuoteReply(r)
	case "card":
		cards := w.ding.Cards(w.conversation(args[0]))
		at := slices.IndexFunc(cards, func(c dingtalktest.Card) bool { return hasWord(c.Content+" ", what) })
		if at < 0 {
			return fmt.Errorf("no card in %s has %q: %s", args[0], what, describeCards(cards))
		}
		m.Quote = dingtalktest.QuoteOf(cards[at])
		m.Quote.CreatedAt = cards[at].Delivered.Add(-time.Hour) // the key of the card alone names it
	case "record": // TITLE NICK TEXT…: a forwarded record that the bot never got
		var said [][2]string
		for at := 7; at+1 < len(args); at += 2 {
			said = append(said, [2]string{args[at], args[at+1]})
		}
		m.Quote = dingtalktest.QuoteRecord(what, args[6], time.Date(2026, 3, 5, 2, 0, 0, 0, time.UTC), said...)
	case "nested": // WORDS INNERWORDS
		m.Quote = dingtalktest.QuoteText(what, "$:LWCP_v1:$"+w.person("李娜"), args[6])
		m.Quote.Inner = dingtalktest.QuoteText(what+"-inner", "$:LWCP_v1:$"+w.person("张伟"), args[7])
	case "quoteMessage", "quoteContent": // WORDS: the older shapes
		m.Quote = dingtalktest.QuoteText(what, "$:LWCP_v1:$"+w.person("李娜"), args[6])
		m.Quote.Legacy = kind
	case "tree": // TITLE TEXT: another program's card
		m.Quote = &dingtalktest.Quote{MsgType: "interactiveCard", MsgID: what, Content: map[string]any{"cardContent": map[string]any{
			"title": args[6], "contents": []any{map[string]any{"text": args[7]}},
		}}}
	default: // the nick of a person
		if len(args) != 7 {
			return errors.New("want the person, the id and the words of the quoted message")
		}
		m.Quote = dingtalktest.QuoteText(what, "$:LWCP_v1:$"+w.person(kind), args[6])
	}
	w.ding.Say(m)
	return nil
}

// cmdForm is: CONV NICK ID mention TEXT NICK…, or rich PART…, or record TITLE NICK TEXT. All people named are mentioned.
func (w *world) cmdForm(args []string) error {
	m := dingtalktest.Message{}
	switch kind, rest := args[3], args[4:]; kind {
	case "mention":
		m.Text = rest[0]
		for _, nick := range rest[1:] {
			m.AtUsers = append(m.AtUsers, w.person(nick))
		}
	case "rich":
		var parts []dingtalktest.RichPart
		for _, p := range rest {
			parts = append(parts, dingtalktest.RichPart{Text: p})
			if p == "@李娜" {
				m.AtUsers = append(m.AtUsers, w.person("李娜"))
			}
		}
		m.MsgType, m.Content = "richText", dingtalktest.RichText(parts...).Content
	case "record":
		m = dingtalktest.ChatRecord(rest[0], [2]string{rest[1], rest[2]})
	default:
		return fmt.Errorf("no form of a message is named %q", kind)
	}
	m.Conversation, m.Sender, m.MsgID = args[0], w.person(args[1]), args[2]
	w.ding.Say(m)
	return nil
}

func (w *world) cmdDM(args []string) error {
	w.ding.Say(dingtalktest.Message{Direct: true, Sender: w.person(args[0]), MsgID: args[1], Text: args[2]})
	return nil
}

func (w *world) cmdShout(args []string) error {
	kb, err := strconv.Atoi(args[4])
	if err != nil {
		return err
	}
	return w.cmdSay([]string{args[0], args[1], args[2], strings.Repeat(args[3], kb<<10/len(args[3]))})
}

// acks counts the answers to the pushes of a message, by whether they were 200.
func (w *world) acks(msgID string) (good, bad int) {
	for _, e := range w.ding.Transcript() {
		if e.Kind == "ack" && e.MsgID == msgID {
			if e.Status == 200 {
				good++
			} else {
				bad++
			}
		}
	}
	return good, bad
}

func (w *world) cmdAcked(args []string) error {
	want := 1
	if len(args) > 1 {
		var err error
		if want, err = strconv.Atoi(args[1]); err != nil {
			return err
		}
	}
	return w.until(fmt.Sprintf("%d acks of %s", want, args[0]), patience, func() (bool, string) {
		good, bad := w.acks(args[0])
		return good >= want, fmt.Sprintf("%d with 200, %d others", good, bad)
	})
}

func (w *world) cmdNotAcked(args []string) error {
	if good, _ := w.acks(args[0]); good > 0 {
		return fmt.Errorf("message %s was acknowledged", args[0])
	}
	return nil
}

func (w *world) cmdRefused(args []string) error {
	return w.until("an ack of "+args[0]+" other than 200", patience, func() (bool, string) {
		good, bad := w.acks(args[0])
		return bad > 0, fmt.Sprintf("%d with 200, %d others", good, bad)
	})
}

// find is the first reply to a conversation that has the text.
func (w *world) find(conversation, text string) (dingtalktest.Reply, bool) {
	for _, r := range w.ding.Replies(w.conversation(conversation)) {
		if hasWord(r.Text, text) {
			return r, true
		}
	}
	return dingtalktest.Reply{}, false
}

func (w *world) cmdReply(args []string) error {
	within := patience
	if len(args) > 2 {
		var err error
		if within, err = time.ParseDuration(args[2]); err != nil {
			return err
		}
	}
	return w.until(fmt.Sprintf("a reply to %s with %q", args[0], args[1]), within, func() (bool, string) {
		_, ok := w.find(args[0], args[1])
		return ok, w.repliesIn(args[0])
	})
}

// repliesIn lists the replies in a conversation, for messages.
func (w *world) repliesIn(conversation string) string {
	var texts []string
	for _, r := range w.ding.Replies(w.conversation(conversation)) {
		texts = append(texts, strconv.Quote(clipped(r.Text)))
	}
	return "replies " + strings.Join(texts, ", ")
}

func (w *world) cmdReplies(args []string) error {
	want, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	if err := w.settle(); err != nil {
		return err
	}
	n := 0
	for _, r := range w.ding.Replies(w.conversation(args[0])) {
		if len(args) < 3 || hasWord(r.Text, args[2]) {
			n++
		}
	}
	if n != want {
		return fmt.Errorf("%d replies, want %d; %s", n, want, w.repliesIn(args[0]))
	}
	return nil
}

var answerRE = regexp.MustCompile(`\bA\d+\b`)

// cmdOrder compares all numbered answers of a conversation, so that one too many is found too.
func (w *world) cmdOrder(args []string) error {
	if err := w.settle(); err != nil {
		return err
	}
	var got []string
	for _, r := range w.ding.Replies(w.conversation(args[0])) {
		got = append(got, answerRE.FindAllString(r.Text, -1)...)
	}
	if !slices.Equal(got, args[1:]) {
		return fmt.Errorf("the answers came as %v, want %v", got, args[1:])
	}
	return nil
}

func (w *world) cmdMentions(args []string) error {
	if err := w.cmdReply(args[:2]); err != nil {
		return err
	}
	r, _ := w.find(args[0], args[1])
	var want []string
	for _, nick := range args[2:] {
		want = append(want, w.person(nick))
	}
	got := slices.Sorted(slices.Values(r.AtUserIDs))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("the reply mentions %v, want %v", got, want)
	}
	return nil
}

func (w *world) cmdVia(args []string) error {
	if err := w.cmdReply(args[:2]); err != nil {
		return err
	}
	if r, _ := w.find(args[0], args[1]); r.Via != args[2] {
		return fmt.Errorf("the reply went by %s, want %s", r.Via, args[2])
	}
	return nil
}

func (w *world) cmdRedeliver(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	o := dingtalktest.RedeliverOptions{
		Times: n, SameFrameID: slices.Contains(args[2:], "same"), Everywhere: slices.Contains(args[2:], "everywhere"),
	}
	if !w.ding.Redeliver(args[0], o) {
		return fmt.Errorf("no message %s", args[0])
	}
	return nil
}

func (w *world) cmdDisconnect([]string) error {
	if w.ding.Disconnect(dingtalktest.DisconnectOptions{}) == 0 {
		return fmt.Errorf("no live connection")
	}
	return nil
}

func (w *world) cmdDrop(args []string) error {
	how := dingtalktest.DropRST
	if len(args) > 0 {
		how = args[0]
	}
	if w.ding.Drop(dingtalktest.DropOptions{How: how}) == 0 {
		return fmt.Errorf("no connection")
	}
	return nil
}

func (w *world) cmdOnline(args []string) error {
	want, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	return w.until(args[0]+" live connections", patience, func() (bool, string) {
		live := w.ding.State().Live
		return live == want, strconv.Itoa(live)
	})
}

func (w *world) cmdFrames(args []string) error {
	if sent := w.ding.PlayMalformed(args[0]); len(sent) != 13 {
		return fmt.Errorf("%d kinds of malformed frames were sent, want 13", len(sent))
	}
	return nil
}

func (w *world) cmdWebhook(args []string) error {
	switch args[0] {
	case "forgetful":
		w.ding.ForgetMsgUUIDs()
		return nil
	case "expire":
		w.ding.ExpireWebhooks(strings.Join(args[1:], ""))
		return nil
	case "fault", "api":
		if len(args) < 3 {
			return fmt.Errorf("webhook %s CODE N [CONV [TEXT]]", args[0])
		}
	default:
		return fmt.Errorf("webhook %s?", args[0])
	}
	n, err := strconv.Atoi(third(args))
	if err != nil {
		return err
	}
	f := dingtalktest.Fault{Route: dingtalktest.RouteWebhook, Count: n}
	if args[0] == "api" { // a target without webhook is reached by the open API
		f.Route = dingtalktest.RouteGroupSend
	}
	if len(args) > 3 {
		f.Conversation, f.Contains = args[3], strings.Join(args[4:], "")
	}
	code, err := strconv.Atoi(args[1])
	switch {
	case slices.Contains(dingtalktest.ActionNames(), args[1]):
		f.Action = dingtalktest.Do(args[1])
	case err != nil:
		return fmt.Errorf("no fault %q", args[1])
	default:
		f.Action = dingtalktest.ErrCode(code, "refused by the scenario")
	}
	w.ding.AddFault(f)
	return nil
}

func (w *world) cmdToken(args []string) error {
	if args[0] != "revoke" {
		return fmt.Errorf("token %s?", args[0])
	}
	w.ding.RevokeTokens()
	return nil
}

func (w *world) cmdDuplicate(args []string) error {
	return w.until("a repetition in "+args[0], patience, func() (bool, string) {
		for _, e := range w.ding.Transcript() {
			if e.Kind == "duplicate" && e.Conversation == args[0] {
				return true, ""
			}
		}
		return false, "none"
	})
}

func (w *world) cmdViolations(args []string) error {
	want, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if got := w.ding.Violations(); len(got) != want {
		return fmt.Errorf("%d violations, want %d: %v", len(got), want, got)
	}
	return nil
}
