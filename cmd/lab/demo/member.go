package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/dingtalktest"
)

// answerWithin is how long a line at the prompt waits for its answer before the next may be typed.
const answerWithin = 60 * time.Second

const memberHelp = `
现在你也在群里，打字就是对机器人说话。命令：/memory /status /compact /help，/quit 或 Ctrl-D 结束。
最新卡片上的按钮：:good :bad
You are in the group now: what you type is said to the bot. Commands: /memory,
/status, /compact, /help; /quit or Ctrl-D ends.
Buttons of the newest card: :good and :bad.
`

// buttons are the lines that press a button.
var buttons = map[string]chat.Action{":good": chat.ActionGood, ":bad": chat.ActionBad}

// converseWith makes the person at the terminal a member of the group, until the input or ctx ends.
func (s *story) converseWith(ctx context.Context, in io.Reader, out io.Writer) error {
	fmt.Fprint(out, memberHelp)
	lines := make(chan string)
	go readLines(ctx, in, lines)
	for {
		if err := s.printPrompt(ctx, out); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			fmt.Fprintln(out)
			return nil
		case line, ok := <-lines:
			line = strings.TrimSpace(line)
			switch {
			case !ok:
				fmt.Fprintln(out)
				return nil
			case line == "/quit":
				return nil
			case buttons[line] != "":
				if err := s.clickNewest(ctx, out, buttons[line]); err != nil {
					return err
				}
			case line != "":
				if err := s.exchangeLine(ctx, out, line); err != nil {
					return err
				}
			}
		}
	}
}

// printPrompt shows how full the context is, and who is asked.
func (s *story) printPrompt(ctx context.Context, out io.Writer) error {
	row, err := s.readSession(ctx)
	if err != nil {
		return err
	}
	p := s.show.palette
	figures := fmt.Sprintf("[%s/%s tokens · flush %d · compact %d]", withCommas(row.TotalTokens), withCommas(demoThreshold), row.FlushCount, row.CompactionCount)
	fmt.Fprintf(out, "%s %s ", p.dim(figures), p.name(you.Name+">"))
	return nil
}

// exchangeLine says one line to the group and prints the answer, a card as it grows.
func (s *story) exchangeLine(ctx context.Context, out io.Writer, line string) error {
	one, stop := context.WithTimeoutCause(ctx, answerWithin, fmt.Errorf("no answer within %s", answerWithin))
	defer stop()
	id := s.dingtalk.Say(dingtalktest.Message{Conversation: string(demoGroup), Sender: you.ID, Text: line})
	if _, err := s.dingtalk.WaitAck(one, id); err != nil {
		return err
	}
	track, err := s.trackOf(one, id)
	if err != nil {
		return err
	}
	fmt.Fprint(out, s.show.palette.good(demoBotName+":")+" ")
	text := growingText{out: out}
	grown := make(chan struct{})
	watch, unwatch := context.WithCancel(one)
	go func() {
		defer close(grown)
		s.dingtalk.WatchCards(watch, string(demoGroup), func(c dingtalktest.Card) {
			if c.TrackID == track {
				text.grow(readableText(c.Content))
			}
		})
	}()
	reply, err := s.replyTo(one, id, track)
	unwatch()
	<-grown
	if err != nil {
		return fmt.Errorf("%w: %w", context.Cause(one), err)
	}
	text.end(afterMention.ReplaceAllString(readableText(reply.Text), "$1 "))
	return nil
}

// afterMention is the empty line that stands between the mention and the words.
var afterMention = regexp.MustCompile(`^(@\S+) *\n\n`)

// readLines passes lines on until the input ends. It may outlive the demo, waiting for a line that never comes.
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
