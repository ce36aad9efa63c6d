package dingtalktest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

// callbackPatience is how long people see a button at work; an answer after it changes nothing.
const callbackPatience = 2 * time.Second

// CardClick is a press of a button on a card.
type CardClick struct {
	// TrackID is the card's outTrackId.
	TrackID string
	// UserID is the staff id of the person who clicks, a member of the conversation or not.
	UserID string
	// Action is the button's action id; Params are added to its parameter "action".
	Action string
	Params map[string]any
	// Copies pushes the callback this number of times at once, each in a frame of its own; 0 means 1.
	Copies int
	// Unknown allows a TrackID that the simulator does not know, as of a card of another installation. It is then a card of
	// the conversation named.
	Unknown      bool
	Conversation string
}

// ClickAnswer is the bot's answer to one callback.
type ClickAnswer struct {
	// Code is the ack's, Data its text; Fault names the fault of its shape, if there is one.
	Code  int
	Data  string
	Fault string
	// Took is the time from the push to the ack; Late answers came after 2 s and changed nothing.
	Took time.Duration
	Late bool
	// Params and Private are the new values of the card, for all and for the person who clicked.
	Params, Private map[string]string
}

// Click plays a person's click on a card's button and waits for the answer. It is an error when the card is not there, when
// it asks for no stream callback, when no connection subscribed to the topic, and when no answer came.
func (s *cards) Click(ctx context.Context, trackID, userID, action string) (ClickAnswer, error) {
	answers, err := s.ClickCard(ctx, CardClick{TrackID: trackID, UserID: userID, Action: action})
	if err != nil {
		return ClickAnswer{}, err
	}
	return answers[0], nil
}

// ClickCard is Click for the rarer kinds of clicks; there is one answer for each copy.
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

// callbackLocked is the `data` of a card callback.
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
		"type": "actionCallback", "outTrackId": click.TrackID, "corpId": a.CorpID, "userId": click.UserID, "userIdType": 1,
		"spaceType": kind, "spaceId": in, "extension": "{}", "content": string(content),
	})
	return string(data)
}

// cardAnswer is the answer to a callback, without anything for no change.
type cardAnswer struct {
	Options     cardUpdateOptions `json:"cardUpdateOptions"`
	CardData    *cardData         `json:"cardData"`
	PrivateData *cardData         `json:"userPrivateData"`
}

// readCardAnswer reads the data of an ack; the second result is the fault of its shape.
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

// cardAnsweredLocked takes the ack of a click: it may carry new values for the card.
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

// callbackFaultLocked reports an answer to a click, of a card that may be unknown.
func (s *cards) callbackFaultLocked(p *push, kind, detail string) {
	if p.card != nil {
		s.reportLocked(p.card, kind, p.note+": "+detail)
		return
	}
	s.violateLocked(p.violation(kind, p.note+": "+detail))
}

// overdueClicksLocked are the clicks on a connection that have waited too long for an answer.
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
