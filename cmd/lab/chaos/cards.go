package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/cmd/lab/rig"
	"ebb/sql/inspect"
)

// cardKinds are faults of a run with cards.
var cardKinds = []chaosKind{
	{"card end", 12, injector.spoilCardEnd},
	{"card update", 6, injector.spoilCardUpdate},
	{"card create", 8, injector.spoilCardCreate},
	{"card click", 10, injector.clickCards},
	{"reaction", 12, injector.spoilReactions},
}

// badCardCalls are answers to card calls, some of them after the effect.
var badCardCalls = []string{
	"card-system-busy", "503", "reset-after", "posted-timeout", "qps", "502-after", "truncated", "reset-before", "500", "unknown-error", "hang",
}

// spoilCardEnd spoils the last frames of cards. Many in a row make a reply take another way.
func (w injector) spoilCardEnd(_ context.Context, t fault) error {
	f := dingtalktest.Fault{
		Route: dingtalktest.RouteCardStream, Final: true, Action: dingtalktest.Do(badCardCalls[t.n%len(badCardCalls)]), Count: 1 + t.n%6,
	}
	if t.n%12 == 0 { // DingTalk refuses a reply's text, and never that of a closed card
		f.Action, f.Contains = dingtalktest.Do("content-unsafe"), `"isFinalize":true`
	}
	w.sim.AddFault(f)
	return nil
}

func (w injector) spoilCardUpdate(_ context.Context, t fault) error {
	w.sim.AddFault(dingtalktest.Fault{
		Route: dingtalktest.RouteCardStream, Action: dingtalktest.Do(badCardCalls[t.n%len(badCardCalls)]), Count: 1 + t.n%4,
	})
	return nil
}

// spoilCardCreate spoils deliveries. An undelivered card is rare, because it ends the cards of its gateway for a
// while.
func (w injector) spoilCardCreate(_ context.Context, t fault) error {
	f := dingtalktest.Fault{Route: dingtalktest.RouteCardSend, Action: dingtalktest.Do(badCardCalls[t.n%len(badCardCalls)]), Count: 1 + t.n%3}
	if t.n%20 == 0 {
		f.Action, f.Count = dingtalktest.Do("card-undelivered"), 1
	}
	w.sim.AddFault(f)
	return nil
}

func (w injector) spoilReactions(_ context.Context, t fault) error {
	f := dingtalktest.Fault{Route: dingtalktest.RouteEmotion, Action: dingtalktest.Do(badCardCalls[t.n%len(badCardCalls)]), Count: 1 + t.n%3}
	if t.n%2 == 0 {
		f.Route = dingtalktest.RouteEmotionRecall
	}
	w.sim.AddFault(f)
	return nil
}

// clickPatience bounds the clicks of one fault: a killed or frozen gateway does not answer.
const clickPatience = 3 * time.Second

// clickCards presses buttons on running and ended cards, as an asker or another person. A lost answer is part of the
// faults; the simulator reports a late or malformed one.
func (w injector) clickCards(ctx context.Context, t fault) error {
	ctx, stop := context.WithTimeout(ctx, clickPatience)
	defer stop()
	cards := w.sim.OpenCards()
	if all := w.sim.Cards(""); t.n%2 == 0 && len(all) > 0 {
		cards = append(cards, all[len(all)*(t.n%100)/100], all[len(all)-1])
	}
	for i, c := range cards[:min(len(cards), 1+t.n%5)] {
		who, action := chaosPeople[t.n%len(chaosPeople)].ID, []string{"stop", "good", "bad"}[(t.n+i)%3]
		if t.n%3 > 0 && len(c.MentionedIDs) > 0 {
			who = c.MentionedIDs[0]
		}
		_, _ = w.sim.ClickCard(ctx, dingtalktest.CardClick{TrackID: c.TrackID, UserID: who, Action: action, Copies: 1 + t.n%2})
	}
	return nil
}

// isClick finds clicks that stop a turn: commands without an answer.
func isClick(l inspect.Logged) bool { return strings.HasPrefix(string(l.MsgID), "stop-") }

var cardViolations = []string{
	dingtalktest.CardAfterFinalize, dingtalktest.CardNotFinalized, dingtalktest.CardCallbackSlow, dingtalktest.CardCallbackMalformed,
	dingtalktest.CardBlank, dingtalktest.CardGUIDReused, dingtalktest.CardMixedWrites, dingtalktest.CardBrokenMarkdown,
}

// checkCards: each visible card has ended, in DingTalk and in the database.
func (e *evidence) checkCards(f *findings) {
	for _, c := range e.cards {
		switch {
		case c.Delivered.IsZero():
		case c.State == dingtalktest.CardFinished:
			f.cards++
		case c.State == dingtalktest.CardFailed:
			f.closed++
		default:
			f.addBroken("card %s in %s stays %s: %q", c.TrackID, c.Conversation, c.State, shorten(c.Content))
		}
	}
	if n := e.open.Cards; n > 0 {
		f.addBroken("%d cards are still open in the database", n)
	}
	if len(e.marks) > 0 {
		f.addBroken("thinking marks are left on %s", strings.Join(e.marks, ", "))
	}
	for _, v := range e.strange {
		if strings.HasPrefix(v.Kind, "card-") && !e.excuses(v) {
			f.addBroken("protocol: %s", v)
		}
	}
}

// excuses violations by gateways that could not know better. One that stood still answers clicks late. One that lost a
// session may send another frame, which DingTalk refuses once the next owner has ended the card. After an end without an answer the
// reply goes another way, and only the closing call shows that the end had arrived.
func (e *evidence) excuses(v dingtalktest.Violation) bool {
	before := v.Time.Add(-apartFor)
	switch v.Kind {
	case dingtalktest.CardCallbackSlow:
		return e.anyStood(before, v.Time)
	case dingtalktest.CardAfterFinalize:
		return e.anyStood(before, v.Time) || e.erasedBetween(v.Conversation, before, v.Time) ||
			countOverlaps(e.away, rig.Interval{From: before, To: v.Time}) > 0 || e.endedUnseen(v)
	}
	return false
}

// uncertainFor is the time from a reply that left its card to the closing call: the conversation pauses meanwhile.
const uncertainFor = 2 * time.Minute

// endedUnseen reports whether the end of a card had no answer before the call of a violation. Another call had to find it out, on the card
// or after the reply was sent again. A later erasure takes the card's name from the reply: any uncertain reply of the conversation
// counts then.
func (e *evidence) endedUnseen(v dingtalktest.Violation) bool {
	uncertain := func(id letterID) bool {
		return slices.ContainsFunc([]map[letterID]time.Time{e.again, e.unsure}, func(known map[letterID]time.Time) bool {
			from := known[id]
			return !from.IsZero() && from.Before(v.Time) && v.Time.Sub(from) < uncertainFor
		})
	}
	named := slices.IndexFunc(e.letters, func(l inspect.Letter) bool { return l.Nonce != "" && l.Nonce == v.TrackID })
	if named >= 0 {
		return uncertain(letterID{e.letters[named].Key, e.letters[named].ID})
	}
	if v.TrackID == "" || !e.erasedBetween(v.Conversation, v.Time, endOfTime) {
		return false
	}
	for _, known := range []map[letterID]time.Time{e.again, e.unsure} {
		for id := range known {
			if _, conversation := id.key.Conversation(); string(conversation) == v.Conversation && uncertain(id) {
				return true
			}
		}
	}
	return false
}

func cardsLine(f *findings) string {
	return fmt.Sprintf("cards: finished %d, closed with an error %d", f.cards, f.closed)
}
