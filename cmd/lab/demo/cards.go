package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/cmd/lab/rig"
	"ebb/sessions"
)

// cardInterval is short, because the demo's answers are.
const cardInterval = 200 * time.Millisecond

// Without a terminal the story prints the cards.
func (s *stage) followCards(ctx context.Context) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		if s.show.isTerminal() {
			s.dingtalk.WatchCards(ctx, string(demoGroup), func(c dingtalktest.Card) {
				s.show.showCard(c.TrackID, oneLine(c.Content), c.Done())
			})
		}
	}()
	return done
}

func (s *stage) trackOf(ctx context.Context, msgID string) (string, error) {
	events, err := s.countEvents(ctx)
	if err != nil {
		return "", err
	}
	e, ok := events[msgID]
	if !ok {
		return "", fmt.Errorf("expected the event log to hold message %s, it does not", msgID)
	}
	return chat.ReplyKey(s.key, e), nil
}

// sayForCard shows the first frame with the words, unless the card has ended.
func (s *story) sayForCard(ctx context.Context, u rig.Utterance, words string) (id string, err error) {
	if id, err = s.sayAs(ctx, u); err != nil {
		return "", err
	}
	first, err := s.dingtalk.WaitCard(ctx, string(demoGroup), "text on a card", func(c dingtalktest.Card) bool {
		return c.TrackID == s.tracks[id] && (c.Done() || strings.Contains(c.Content, words))
	})
	if err == nil && !first.Done() {
		s.show.showCard(first.TrackID, oneLine(first.Content), false)
	}
	return id, err
}

func (s *story) stopAnswer(ctx context.Context) error {
	s.model.Add(scriptReport())
	words := string([]rune(reportOpening)[:8])
	id, err := s.sayForCard(ctx, longReport, words)
	if err != nil {
		return err
	}
	if err := s.pauseFor(ctx, time.Second); err != nil {
		return err
	}
	if _, err := s.click(ctx, s.tracks[id], longReport.Speaker, sessions.ButtonStop); err != nil {
		return err
	}
	text, err := s.awaitAnswer(ctx, id)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(text, words) || !strings.HasSuffix(text, cutShort) {
		return fmt.Errorf("expected the card to end with its words so far and %q, got %q", cutShort, text)
	}
	s.show.showAction("张伟按了停止，卡片到此为止 · Zhang Wei pressed stop, and the card ended there")
	return s.pauseFor(ctx, 1500*time.Millisecond)
}

func (s *story) rateAnswer(ctx context.Context) error {
	s.model.Add(scriptChecklist())
	id, err := s.sayForCard(ctx, checklist, checklistOpening)
	if err != nil {
		return err
	}
	track := s.tracks[id]
	if _, err := s.awaitAnswer(ctx, id); err != nil {
		return err
	}
	notice, err := s.click(ctx, track, checklist.Speaker, sessions.ButtonGood)
	if err != nil {
		return err
	}
	card, err := s.store.Cards.ClickedCard(ctx, track, "")
	if err != nil {
		return err
	}
	if string(card.Rating) != string(sessions.ButtonGood) {
		return fmt.Errorf("expected the rating %q with the answer, got %q", sessions.ButtonGood, card.Rating)
	}
	s.show.markCard(track, "👍")
	s.show.showAction("李娜点了 👍，评价存进数据库 · Li Na clicked 👍, the rating is stored", "机器人回 the bot's notice: "+notice)
	return s.pauseFor(ctx, 1500*time.Millisecond)
}

// The person's notice may be empty.
func (s *stage) click(ctx context.Context, track string, by rig.Person, a sessions.Button) (notice string, err error) {
	answer, err := s.dingtalk.Click(ctx, track, by.ID, string(a))
	if err != nil {
		return "", err
	}
	if answer.Code != 200 || answer.Fault != "" {
		return "", fmt.Errorf("expected an answer to the click %s, got code %d, %s", a, answer.Code, answer.Fault)
	}
	return answer.Private["notice"], nil
}

func (s *stage) clickNewest(ctx context.Context, out io.Writer, a sessions.Button) error {
	cards := s.dingtalk.Cards(string(demoGroup))
	notice, err := s.click(ctx, cards[len(cards)-1].TrackID, you, a) // the story has shown cards
	if err != nil {
		return err
	}
	if notice == "" {
		notice = "✔"
	}
	fmt.Fprintln(out, s.show.palette.dim("["+string(a)+"] "+notice))
	return nil
}

type growingText struct {
	out   io.Writer
	shown string
}

// A frame that does not continue the text, such as one with a closed code fence, waits for a later one.
func (g *growingText) grow(text string) {
	text, _, _ = strings.Cut(text, "⏳") // the status of the turn
	if rest, ok := strings.CutPrefix(strings.TrimSpace(text), g.shown); ok {
		fmt.Fprint(g.out, rest)
		g.shown += rest
	}
}

func (g *growingText) end(text string) {
	rest, ok := strings.CutPrefix(text, g.shown)
	if !ok {
		rest = "\n" + text
	}
	fmt.Fprintln(g.out, rest)
}
