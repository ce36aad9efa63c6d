package demo

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ebb/bot/command"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/wording"
	"ebb/sessions"
)

const answerWithin = 60 * time.Second

// memberHelp takes the process, for each language, and the link to the console.
const memberHelp = `
现在你也在群里，打字就是对机器人说话。命令：/memory /status /compact /remind /help，/quit 或 Ctrl-D 结束。
最新卡片上的按钮：:good :bad，回答写到一半时还有 :stop（或发 /停止）。
试试：“供应商的对账订单号是多少？”；“10秒后提醒我喝水”；“把压测报告从头念一遍？”，再按 :stop。
模型照脚本答话，只听得懂固定的说法。想试断电？在另一个终端 kill -9 %d，下一个网关会接手。

You are in the group now: what you type is said to the bot. Commands: /memory,
/status, /compact, /remind, /help; /quit or Ctrl-D ends.
Buttons of the newest card: :good, :bad, and :stop (or /stop) during an answer.
Try: "What is the supplier's order number?"; "Remind me in 10 seconds to drink
water"; "Read me the load test report?", then :stop.
The model is scripted: it understands fixed phrases only. For a crash, kill -9 %d
in another terminal: the next gateway takes over.

控制台，链接只能登录一次，用过后这里给出下一个 · The console. Its link logs in once; the next one appears here:
%s
`

const buttonsHelp = "按钮 buttons: :good :bad :stop"

var buttons = map[string]sessions.Button{":good": sessions.ButtonGood, ":bad": sessions.ButtonBad, ":stop": sessions.ButtonStop}

// buttonRE matches unknown buttons too. Chinese keyboards write ： for the colon.
var buttonRE = regexp.MustCompile(`^[:：]([a-zA-Z]{2,})$`)

// readButton returns false for a line to say, and an empty action for an unknown button.
func readButton(line string) (a sessions.Button, ok bool) {
	m := buttonRE.FindStringSubmatch(line)
	if m == nil {
		return "", false
	}
	return buttons[":"+strings.ToLower(m[1])], true
}

type member struct {
	*story
	out     io.Writer
	lines   <-chan string // nil after the end of the input
	typed   []string      // lines typed during an answer
	unasked <-chan dingtalktest.Shown
	news    <-chan string   // about gateways and the console
	answers map[string]bool // names of the answers to lines
	stopped bool            // the newest answer ended by a command
}

func (s *story) converseWith(ctx context.Context, in io.Reader, out io.Writer) error {
	out = &lockedWriter{out: out}
	console, err := s.book.WaitLine(ctx, s.third.Name, codeLine)
	if err != nil {
		return err
	}
	link := fmt.Sprint(console.Fields["console"])
	fmt.Fprintf(out, memberHelp, s.third.PID(), s.third.PID(), link)
	news := s.keepServing(ctx)
	go s.followLinks(ctx, link, news)
	s.model.Add(append(scriptReading(), scriptEnglish()...)...)
	lines := make(chan string)
	go readLines(ctx, in, lines)
	unasked := make(chan dingtalktest.Shown)
	go s.followReplies(ctx, unasked)
	m := &member{story: s, out: out, lines: lines, unasked: unasked, news: news, answers: map[string]bool{}}
	for {
		if err := m.printPrompt(ctx); err != nil {
			return err
		}
		line, ok, err := m.next(ctx)
		if err != nil {
			return err
		}
		if !ok {
			fmt.Fprintln(out)
			return nil
		}
		if line == "/quit" {
			return nil
		}
		if err := m.take(ctx, line); err != nil {
			return err
		}
	}
}

func (m *member) printPrompt(ctx context.Context) error {
	row, err := m.readSession(ctx)
	if err != nil {
		return err
	}
	p := m.show.palette
	figures := fmt.Sprintf("[%s/%s tokens · flush %d · compact %d]", withCommas(row.TotalTokens), withCommas(demoThreshold), row.FlushCount, row.CompactionCount)
	fmt.Fprintf(m.out, "%s %s ", p.dim(figures), p.name(you.Name+">"))
	return nil
}

// next returns false after the end of the input or of ctx. Meanwhile it prints messages that no line asked for, such
// as reminders.
func (m *member) next(ctx context.Context) (line string, ok bool, err error) {
	switch {
	case len(m.typed) > 0:
		line, m.typed = m.typed[0], m.typed[1:]
		fmt.Fprintln(m.out, line)
		return line, true, nil
	case m.lines == nil:
		return "", false, nil
	}
	for {
		select {
		case <-ctx.Done():
			return "", false, nil
		case line, ok = <-m.lines:
			return strings.TrimSpace(line), ok, nil
		case text := <-m.news:
			fmt.Fprintf(m.out, "\n%s\n", m.show.palette.warn(text))
			if err := m.printPrompt(ctx); err != nil {
				return "", false, err
			}
		case r := <-m.unasked:
			if m.answers[nameOf(r)] {
				continue
			}
			fmt.Fprintf(m.out, "\n%s %s\n", m.show.palette.good(demoBotName+":"), joinMention(readableText(r.Text)))
			if err := m.printPrompt(ctx); err != nil {
				return "", false, err
			}
		}
	}
}

// nameOf is the name of a reply: a reminder may come by the webhook of a message that was answered before.
func nameOf(r dingtalktest.Shown) string { return cmp.Or(r.TrackID, r.Time.String()+r.Text) }

// followReplies passes on later replies and finished cards, also those that answer a line.
func (s *story) followReplies(ctx context.Context, unasked chan<- dingtalktest.Shown) {
	seen := map[string]bool{}
	isOpen := func(r dingtalktest.Shown) bool { return r.TrackID != "" && r.State != dingtalktest.CardFinished }
	for _, r := range s.dingtalk.Shown(string(demoGroup)) {
		seen[nameOf(r)] = !isOpen(r)
	}
	for {
		known := s.dingtalk.State().Replies
		for _, r := range s.dingtalk.Shown(string(demoGroup)) {
			if seen[nameOf(r)] || isOpen(r) {
				continue
			}
			seen[nameOf(r)] = true
			select {
			case unasked <- r:
			case <-ctx.Done():
				return
			}
		}
		if s.dingtalk.WaitFor(ctx, "a reply", func(st dingtalktest.State) bool { return st.Replies != known }) != nil {
			return
		}
	}
}

func (m *member) take(ctx context.Context, line string) error {
	switch a, isButton := readButton(line); {
	case line == "":
		return nil
	case isButton && a == "":
		fmt.Fprintln(m.out, m.show.palette.dim(buttonsHelp))
		return nil
	case isButton:
		if err := m.clickNewest(ctx, m.out, a); err != nil && ctx.Err() == nil { // such as while no gateway runs
			fmt.Fprintln(m.out, m.show.palette.dim("["+string(a)+"] "+err.Error()))
		}
		return nil
	}
	return m.exchange(ctx, line)
}

type said struct{ id, track string }

// DingTalk removes the bot's mention from a text.
var botMention = regexp.MustCompile(`(?i)^@` + demoBotName + `\s+`)

// say waits for the acknowledgement.
func (m *member) say(ctx context.Context, line string) (said, error) {
	ctx, stop := context.WithTimeoutCause(ctx, answerWithin, fmt.Errorf("no acknowledgement within %s", answerWithin))
	defer stop()
	id := m.dingtalk.Say(dingtalktest.Message{Conversation: string(demoGroup), Sender: you.ID, Text: botMention.ReplaceAllString(line, "")})
	if _, err := m.dingtalk.WaitAck(ctx, id); err != nil {
		return said{}, fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	track, err := m.trackOf(ctx, id)
	return said{id, track}, err
}

// Lines that stop an answer act at once, others wait for its end.
func (m *member) exchange(ctx context.Context, line string) error {
	asked, err := m.say(ctx, line)
	if err != nil {
		return err
	}
	m.answers[asked.track] = true
	running, ended := context.WithCancel(ctx)
	defer ended()
	answered := make(chan error, 1)
	go func() { answered <- m.showAnswer(ctx, asked) }()
	var stops []said
	var notice, late string
	var press sync.Once
	var pressed sync.WaitGroup
	for {
		select {
		case err := <-answered:
			ended()
			pressed.Wait()
			if notice != "" {
				fmt.Fprintln(m.out, m.show.palette.dim("["+string(sessions.ButtonStop)+"] "+notice))
			}
			if late != "" {
				m.typed = append([]string{late}, m.typed...)
			}
			for i := 0; i < len(stops) && err == nil && !m.stopped; i++ { // one that came too late has an answer of its own
				err = m.showAnswer(ctx, stops[i])
			}
			return err
		case text := <-m.news:
			fmt.Fprintf(m.out, "\n%s\n", m.show.palette.warn(text))
		case line, ok := <-m.lines:
			line = strings.TrimSpace(line)
			a, _ := readButton(line)
			switch {
			case !ok:
				m.lines = nil
			case a == sessions.ButtonStop:
				press.Do(func() {
					pressed.Go(func() {
						var found bool
						if notice, found = m.stopCard(running, asked.track); !found {
							late = line
						}
					})
				})
			case isStop(line):
				s, err := m.say(ctx, line)
				if err != nil {
					return err
				}
				m.answers[s.track] = true
				stops = append(stops, s)
			case line != "":
				m.typed = append(m.typed, line)
			}
		}
	}
}

// isStop takes the bare word too, as the bot does.
func isStop(line string) bool {
	return command.Commands.Parse(line).Name == "stop" || command.Commands.Parse("/"+line).Name == "stop"
}

// isCutShort reports whether a card ended by a command to stop, which has no other answer then.
func isCutShort(text string) bool {
	return slices.ContainsFunc([]string{"zh", "en"}, func(lang string) bool { return strings.Contains(text, wording.Say(wording.CutShort, lang)) })
}

// stopCard returns the notice or the fault, and false when the answer ended before its card was found.
func (m *member) stopCard(ctx context.Context, track string) (notice string, found bool) {
	_, err := m.dingtalk.WaitCard(ctx, string(demoGroup), "the card of the answer", func(c dingtalktest.Card) bool { return c.TrackID == track })
	if err != nil {
		return "", false
	}
	notice, err = m.click(context.WithoutCancel(ctx), track, you, sessions.ButtonStop)
	if err != nil {
		return err.Error(), true
	}
	return notice, true
}

func (m *member) showAnswer(ctx context.Context, asked said) error {
	one, stop := context.WithTimeout(ctx, answerWithin)
	defer stop()
	fmt.Fprint(m.out, m.show.palette.good(demoBotName+":")+" ")
	text := growingText{out: m.out}
	grown := make(chan struct{})
	watch, unwatch := context.WithCancel(one)
	go func() {
		defer close(grown)
		m.dingtalk.WatchCards(watch, string(demoGroup), func(c dingtalktest.Card) {
			if c.TrackID == asked.track {
				text.grow(readableText(c.Content))
			}
		})
	}()
	reply, err := m.replyTo(one, asked.id, asked.track)
	unwatch()
	<-grown
	switch {
	case err != nil && ctx.Err() == nil && one.Err() != nil:
		text.end(fmt.Sprintf("%s …（%.0f 秒内没有答完 no complete answer within %s）", text.shown, answerWithin.Seconds(), answerWithin))
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", context.Cause(one), err)
	}
	m.answers[nameOf(reply)] = true
	m.stopped = isCutShort(reply.Text)
	text.end(joinMention(readableText(reply.Text)))
	return nil
}

var mentionLine = regexp.MustCompile(`^(@\S+) *\n\n`)

// The words of a reply follow its mention, unless they are a list.
func joinMention(text string) string {
	if m := mentionLine.FindString(text); m != "" && !strings.HasPrefix(text[len(m):], "- ") {
		return mentionLine.ReplaceAllString(text, "$1 ")
	}
	return mentionLine.ReplaceAllString(text, "$1\n")
}

// readLines may outlive the demo, in a blocked read.
func readLines(ctx context.Context, in io.Reader, lines chan<- string) {
	defer close(lines)
	for sc := bufio.NewScanner(in); sc.Scan(); {
		select {
		case lines <- sc.Text():
		case <-ctx.Done():
			return
		}
	}
}
