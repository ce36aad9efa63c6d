package dingtalktest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Card is one card, as people see it.
type Card struct {
	TrackID      string `json:"outTrackId"`
	Conversation string `json:"conversation"`
	Template     string `json:"template"`
	State        string `json:"state"`
	// Delivered is zero for a card that never appeared.
	Delivered time.Time         `json:"delivered,omitzero"`
	Params    map[string]string `json:"params"`
	// Private are values by staff id that only one person sees.
	Private map[string]map[string]string `json:"private,omitempty"`
	// Content is the visible text: empty if it is too long to be shown.
	Content string `json:"content"`
	// Frames counts the streaming calls that took effect, Calls those of the month's budget.
	Frames int `json:"frames"`
	Calls  int `json:"calls"`
	// MentionedIDs are staff ids.
	MentionedIDs []string `json:"mentionedIds,omitempty"`
	// ProcessQueryKey is the carrierId that a quote of the card carries.
	ProcessQueryKey string `json:"processQueryKey,omitempty"`
	Recalled        bool   `json:"recalled,omitempty"`
	// Findings are violations, and uses that DingTalk advises against.
	Findings []Violation `json:"findings,omitempty"`
}

// Done reports whether the card has stopped spinning.
func (c Card) Done() bool { return c.State == CardFinished || c.State == CardFailed }

// Cards are the cards of a conversation, or of all when it is empty, in order of appearance.
func (s *cards) Cards(conversation string) []Card {
	return s.cardsWhere(func(k *card) bool { return conversation == "" || k.conversation == conversation })
}

// OpenCards are the visible cards that still spin.
func (s *cards) OpenCards() []Card {
	return s.cardsWhere(func(k *card) bool { return k.key != "" && !k.recalled && !k.done() })
}

func (s *cards) cardsWhere(want func(*card) bool) []Card {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Card
	for _, k := range s.byID {
		if want(k) {
			out = append(out, s.viewLocked(k))
		}
	}
	slices.SortFunc(out, func(a, b Card) int {
		return cmp.Or(a.Delivered.Compare(b.Delivered), cmp.Compare(a.TrackID, b.TrackID))
	})
	return out
}

func (s *cards) viewLocked(k *card) Card {
	private := map[string]map[string]string{}
	for person, params := range k.private {
		private[person] = maps.Clone(params)
	}
	return Card{
		TrackID: k.id, Conversation: k.conversation, Template: k.template.ID, State: k.state, Delivered: k.delivered,
		Params: maps.Clone(k.params), Private: private, Content: k.content(), Frames: k.frames, Calls: s.callsByCard[k.id],
		MentionedIDs: slices.Clone(k.mentioned), ProcessQueryKey: k.key, Recalled: k.recalled, Findings: slices.Clone(k.findings),
	}
}

func (k *card) content() string {
	if k.hidden {
		return ""
	}
	return k.params[k.template.Content]
}

func (s *cards) tooLong(text string) bool {
	han := 0
	for _, r := range text {
		if unicode.Is(unicode.Han, r) {
			han++
		}
	}
	return s.opts.CardBlankAfter > 0 && han > s.opts.CardBlankAfter
}

func openFence(text string) bool {
	open := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		mark := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		if mark == "" {
			mark = line[:len(line)-len(strings.TrimLeft(line, "~"))]
		}
		switch {
		case len(mark) < 3:
		case open == "" && (mark[0] != '`' || !strings.Contains(line[len(mark):], "`")):
			open = mark
		case open != "" && mark[0] == open[0] && len(mark) >= len(open) && mark == line:
			open = ""
		}
	}
	return open != ""
}

// WaitCard waits for a card that done accepts, in any conversation when it is empty. done must not call the Server.
func (s *cards) WaitCard(ctx context.Context, conversation, what string, done func(Card) bool) (Card, error) {
	var found Card
	seen := 0
	err := s.wait(ctx, fmt.Sprintf("%s in conversation %q", what, conversation), func() bool {
		for _, k := range s.byID {
			if k.revision <= seen || (conversation != "" && k.conversation != conversation) {
				continue
			}
			if found = s.viewLocked(k); done(found) {
				return true
			}
		}
		seen = s.revision
		return false
	})
	return found, err
}

// WatchCards calls show after each change of a card in a conversation, or in any when it is empty, until ctx ends.
// Changes during a call are joined into one. show may call the Server.
func (s *cards) WatchCards(ctx context.Context, conversation string, show func(Card)) {
	seen := 0
	for {
		var changed []Card
		next := seen
		err := s.wait(ctx, "a change of a card", func() bool {
			for _, k := range s.byID {
				if k.revision > seen && (conversation == "" || k.conversation == conversation) {
					changed = append(changed, s.viewLocked(k))
					next = max(next, k.revision)
				}
			}
			return len(changed) > 0
		})
		if err != nil {
			return
		}
		seen = next
		slices.SortFunc(changed, func(a, b Card) int { return a.Delivered.Compare(b.Delivered) })
		for _, c := range changed {
			show(c)
		}
	}
}

// Shown is one visible message or card.
type Shown struct {
	Time time.Time `json:"time"`
	// Via is "webhook", "openapi", "card" or "custom".
	Via   string `json:"via"`
	Title string `json:"title,omitempty"`
	Text  string `json:"text"`
	// MsgID is the message whose webhook was used; TrackID and State are a card's.
	MsgID        string   `json:"msgId,omitempty"`
	TrackID      string   `json:"outTrackId,omitempty"`
	State        string   `json:"state,omitempty"`
	MentionedIDs []string `json:"mentionedIds,omitempty"`
}

// Shown lists the bot's visible messages and cards, oldest first.
func (s *cards) Shown(conversation string) []Shown {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Shown
	for _, r := range s.replies {
		if r.Conversation == conversation && r.Via != "card" && !r.Recalled {
			out = append(out, Shown{Time: r.Time, Via: r.Via, Title: r.Title, Text: r.Text, MsgID: r.MsgID, MentionedIDs: r.AtUserIDs})
		}
	}
	for _, k := range s.byID {
		if k.conversation == conversation && k.key != "" && !k.recalled {
			out = append(out, Shown{
				Time: k.delivered, Via: "card", Title: k.params["title"], Text: k.content(), TrackID: k.id, State: k.state,
				MentionedIDs: k.mentioned,
			})
		}
	}
	slices.SortStableFunc(out, func(a, b Shown) int { return a.Time.Compare(b.Time) })
	return out
}
