package dingtalktest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

// DingTalk waits this long for the answer to a click. A later answer changes nothing.
const callbackPatience = 2 * time.Second

// CardClick is a press of a card's button.
type CardClick struct {
	TrackID string
	// UserID is a staff id, also of no member of the conversation.
	UserID string
	// CorpID is the organization of UserID, empty for that of the application.
	CorpID string
	// Params are added to the button's parameter "action".
	Action string
	Params map[string]any
	// Copies is the number of simultaneous pushes; 0 means 1.
	Copies int
	// Unknown allows an unknown TrackID, in the given Conversation.
	Unknown      bool
	Conversation string
}

// ClickAnswer is the bot's answer to one callback.
type ClickAnswer struct {
	// Code and Data are the ack's. Fault names the fault of its shape, if any.
	Code  int
	Data  string
	Fault string
	// Took is the time from the push to the ack. Late answers took over 2 s and changed nothing.
	Took time.Duration
	Late bool
	// Params are new values of the card for all, Private those for the person who clicked.
	Params, Private map[string]string
}

// Click presses a card's button and waits for the answer. It fails without such a card, stream callback, subscription
// or answer.
func (s *cards) Click(ctx context.Context, trackID, userID, action string) (ClickAnswer, error) {
	answers, err := s.ClickCard(ctx, CardClick{TrackID: trackID, UserID: userID, Action: action})
	if err != nil {
		return ClickAnswer{}, err
	}
	return answers[0], nil
}

// ClickCard returns one answer for each copy.
func (s *cards) ClickCard(ctx context.Context, click CardClick) ([]ClickAnswer, error) {
	pushes, err := s.pushClick(click)
	if err != nil {
		return nil, fmt.Errorf("clicking on card %s: %w", click.TrackID, err)
	}
	defer s.clickEnded(click.TrackID, len(pushes))
	lost := false
	err = s.wait(ctx, fmt.Sprintf("the answer to %s's click %s on card %s", click.UserID, click.Action, click.TrackID), func() bool {
		answered := true
		for _, p := range pushes {
			lost = lost || p.lost
			answered = answered && p.answer != nil
		}
		return answered || lost
	})
	switch {
	case err != nil:
		return nil, err
	case lost:
		return nil, fmt.Errorf("clicking on card %s: the connection ended without an answer", click.TrackID)
	}
	answers := make([]ClickAnswer, len(pushes))
	for i, p := range pushes {
		answers[i] = *p.answer
	}
	return answers, nil
}

func (s *cards) clickEnded(trackID string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.byID[trackID]; k != nil {
		k.clicks -= n
	}
}

func (s *cards) pushClick(click CardClick) ([]*push, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, a, conversation := s.byID[click.TrackID], s.apps[0], click.Conversation
	switch {
	case k == nil && !click.Unknown, k != nil && k.key == "":
		return nil, fmt.Errorf("there is no such card")
	case k != nil && k.callback != "STREAM":
		return nil, fmt.Errorf("its callbackType is %q, not STREAM", k.callback)
	case k != nil:
		a, conversation = k.app, k.conversation
	}
	n := max(click.Copies, 1)
	to := s.pickLocked(a, TopicCard, n)
	if len(to) == 0 {
		return nil, fmt.Errorf("no connection subscribed to %s", TopicCard)
	}
	data := s.callbackLocked(click, a, conversation)
	pushes := make([]*push, n)
	for i := range pushes {
		c := to[i%len(to)]
		p := &push{
			kind: pushCard, frameID: newFrameID(), topic: TopicCard, conn: c, card: k, clicker: click.UserID, wantsAck: true,
			note: click.UserID + " clicks " + click.Action + " on " + click.TrackID,
		}
		p.answered = func(ack Ack) { s.cardAnsweredLocked(p, ack) }
		s.registerLocked(p)
		c.enqueue(outFrame{bytes: s.frameLocked(c, TopicCard, p.frameID, data), due: time.Now().Add(s.latencyLocked()), push: p})
		pushes[i] = p
	}
	if k != nil {
		k.clicks += n
	}
	return pushes, nil
}

func (s *cards) callbackLocked(click CardClick, a *app, conversation string) string {
	params := map[string]any{"action": click.Action}
	maps.Copy(params, click.Params)
	content, _ := json.Marshal(map[string]any{"cardPrivateData": map[string]any{ // maps of plain values
		"actionIds": []string{click.Action}, "params": params,
	}})
	kind, in := "IM_GROUP", conversation
	if g := s.groups[conversation]; g != nil && g.direct != "" {
		kind, in = "IM_ROBOT", g.direct
	}
	data, _ := json.Marshal(map[string]any{
		"type": "actionCallback", "outTrackId": click.TrackID, "corpId": cmp.Or(click.CorpID, a.CorpID), "userId": click.UserID, "userIdType": 1,
		"spaceType": kind, "spaceId": in, "extension": "{}", "content": string(content),
	})
	return string(data)
}

type cardAnswer struct {
	Options     cardUpdateOptions `json:"cardUpdateOptions"`
	CardData    *cardData         `json:"cardData"`
	PrivateData *cardData         `json:"userPrivateData"`
}

// The second result is the fault of the ack's shape.
func readCardAnswer(data string) (cardAnswer, string) {
	var outer map[string]json.RawMessage
	var answer cardAnswer
	if json.Unmarshal([]byte(data), &outer) != nil {
		return answer, "the data is no JSON object"
	}
	if _, ok := outer["response"]; !ok {
		return answer, "the data has no response"
	}
	if json.Unmarshal(outer["response"], &answer) != nil {
		return cardAnswer{}, "the response has not the shape of a card's new values, which are strings"
	}
	return answer, ""
}

func (s *cards) cardAnsweredLocked(p *push, ack Ack) {
	out := &ClickAnswer{Code: ack.Code, Data: ack.Data, Took: ack.Took, Late: ack.Took > callbackPatience}
	p.answer = out
	if out.Late {
		s.callbackFaultLocked(p, CardCallbackSlow, fmt.Sprintf("answered after %s", ack.Took.Round(time.Millisecond)))
	}
	if ack.Code != 200 {
		return // the person sees a failure
	}
	answer, fault := readCardAnswer(ack.Data)
	if fault != "" {
		out.Fault = fault
		s.callbackFaultLocked(p, CardCallbackMalformed, fault+": "+clip(ack.Data))
		return
	}
	k := p.card
	if answer.PrivateData != nil {
		out.Private = answer.PrivateData.CardParamMap
		if k != nil && !out.Late {
			k.writePrivate(p.clicker, out.Private, answer.Options.UpdatePrivateDataByKey)
			s.touchLocked(k)
		}
	}
	if answer.CardData != nil {
		out.Params = answer.CardData.CardParamMap
		if k != nil && !out.Late {
			s.writeLocked(k, out.Params, answer.Options.UpdateCardDataByKey)
		}
	}
}

func (s *cards) callbackFaultLocked(p *push, kind, detail string) {
	if p.card != nil {
		s.reportLocked(p.card, kind, p.note+": "+detail)
		return
	}
	s.violateLocked(p.violation(kind, p.note+": "+detail))
}

func (c *conn) overdueClicksLocked(now time.Time) []Violation {
	var out []Violation
	for p := range c.owed {
		if p.kind == pushCard && !p.lost && !p.sent.IsZero() && now.Sub(p.sent) > callbackPatience {
			v := p.violation(CardCallbackSlow, fmt.Sprintf("%s: no answer for %s", p.note, now.Sub(p.sent).Round(time.Millisecond)))
			v.Time = now
			out = append(out, v)
		}
	}
	return out
}
