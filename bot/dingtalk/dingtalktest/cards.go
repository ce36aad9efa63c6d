package dingtalktest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sort"
	"strings"
	"time"
)

// The states of a card, in the order of a good life.
const (
	CardCreated    = "created" // made, not yet delivered
	CardProcessing = "processing"
	CardInputting  = "inputting"
	CardFinished   = "finished"
	CardFailed     = "failed"
)

// flowStates are the states as a template's variable flowStatus numbers them.
var flowStates = map[string]string{"1": CardProcessing, "2": CardInputting, "3": CardFinished, "5": CardFailed}

const maxStreamBytes = 20000 // a streamed variable beyond this is refused; the documented advice is far less

type card struct {
	id, conversation string
	app              *app
	state            string
	params           map[string]string
	guids            map[string]bool
	callback         string
	touched          time.Time
	updates          int
}

func (c *card) done() bool { return c.state == CardFinished || c.state == CardFailed }

// Card is what the simulator knows of one card.
type Card struct {
	OutTrackID   string            `json:"outTrackId"`
	Conversation string            `json:"conversation"`
	State        string            `json:"state"`
	Params       map[string]string `json:"params"`
	// Updates counts the streaming and update calls that took effect.
	Updates int `json:"updates"`
}

// Cards are all cards, by their outTrackId.
func (s *Server) Cards() []Card {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Card
	for _, c := range s.cards {
		params := map[string]string{}
		maps.Copy(params, c.params)
		out = append(out, Card{OutTrackID: c.id, Conversation: c.conversation, State: c.state, Params: params, Updates: c.updates})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].OutTrackID < out[j].OutTrackID })
	return out
}

type cardRequest struct {
	CardTemplateID string `json:"cardTemplateId"`
	OutTrackID     string `json:"outTrackId"`
	CallbackType   string `json:"callbackType"`
	OpenSpaceID    string `json:"openSpaceId"`
	CardData       *struct {
		CardParamMap map[string]string `json:"cardParamMap"`
	} `json:"cardData"`
	PrivateData map[string]struct {
		CardParamMap map[string]string `json:"cardParamMap"`
	} `json:"privateData"`
	CardUpdateOptions struct {
		UpdateCardDataByKey bool `json:"updateCardDataByKey"`
	} `json:"cardUpdateOptions"`
	GroupDeliver *deliverModel `json:"imGroupOpenDeliverModel"`
	RobotDeliver *deliverModel `json:"imRobotOpenDeliverModel"`
}

type deliverModel struct {
	RobotCode string `json:"robotCode"`
}

func cardError(code string) response { return apiError(http.StatusBadRequest, code, code) }

// newCardLocked makes a card of a request; the second result is the refusal.
func (s *Server) newCardLocked(c *call, q cardRequest) (*card, *response) {
	code := ""
	switch {
	case q.OutTrackID == "":
		code = "param.outTrackIdEmpty"
	case q.CardTemplateID == "":
		code = "param.cardTemplateIdEmpty"
	case !strings.HasSuffix(q.CardTemplateID, ".schema"):
		code = "param.templateNotExist"
	case s.cards[q.OutTrackID] != nil:
		code = "param.cardAlreadyExist"
	}
	if code != "" {
		return nil, badParam(code, code)
	}
	k := &card{
		id: q.OutTrackID, app: c.app, state: CardCreated, params: map[string]string{}, guids: map[string]bool{},
		callback: q.CallbackType, touched: s.nowLocked(),
	}
	if q.CardData != nil {
		k.params = q.CardData.CardParamMap
	}
	if k.params == nil {
		k.params = map[string]string{}
	}
	s.cards[k.id] = k
	return k, nil
}

// deliverCardLocked puts a card into its conversation. A delivery that fails does so inside a 200.
func (s *Server) deliverCardLocked(c *call, k *card, q cardRequest) response {
	kind, id, ok := strings.Cut(strings.TrimPrefix(q.OpenSpaceID, "dtv1.card//"), ".")
	model := q.GroupDeliver
	if kind == "IM_ROBOT" {
		model = q.RobotDeliver
	}
	switch {
	case q.OpenSpaceID == "":
		return cardError("param.openSpaceIdEmpty")
	case !ok || (kind != "IM_GROUP" && kind != "IM_ROBOT"):
		return cardError("param.openSpaceIdInvalid")
	case model == nil:
		return cardError("param.openDeliverModelEmpty")
	}
	k.conversation = s.spaceLocked(q.OpenSpaceID)
	failure := ""
	g := s.groups[k.conversation]
	switch {
	case kind == "IM_ROBOT" && s.users[id] == nil:
		failure = "the user does not exist"
	case kind == "IM_GROUP" && g == nil:
		failure = "the conversation does not exist"
	case kind == "IM_GROUP" && !g.robots[model.RobotCode]:
		s.violateLocked(Violation{Kind: ReplyWrongPlace, Conversation: g.ID, Detail: model.RobotCode + " is not in the group"})
		failure = "the robot is not in the group"
	case kind == "IM_GROUP" && g.Disbanded:
		failure = "the group is disbanded"
	}
	result := map[string]any{"spaceType": kind, "spaceId": id, "success": failure == "", "errorMsg": failure, "carrierId": ""}
	if failure == "" {
		k.state = CardProcessing
		result["carrierId"] = s.sentLocked(c.app.RobotCode)
		s.noteLocked(Entry{Kind: "card", Conversation: k.conversation, Detail: k.id + " delivered"})
	} else {
		k.state = CardFailed
	}
	return jsonResponse(map[string]any{
		"success": true, "result": map[string]any{"outTrackId": k.id, "deliverResults": []any{result}},
	})
}

func (s *Server) cardCreate(c *call) response {
	var q cardRequest
	if json.Unmarshal(c.body, &q) != nil {
		return cardError("param.invalid")
	}
	k, bad := s.newCardLocked(c, q)
	if bad != nil {
		return *bad
	}
	return jsonResponse(map[string]any{"success": true, "result": k.id})
}

func (s *Server) cardDeliver(c *call) response {
	var q cardRequest
	if json.Unmarshal(c.body, &q) != nil {
		return cardError("param.invalid")
	}
	k := s.cards[q.OutTrackID]
	if k == nil {
		return cardError("param.cardNotExist")
	}
	return s.deliverCardLocked(c, k, q)
}

func (s *Server) cardSend(c *call) response {
	var q cardRequest
	if json.Unmarshal(c.body, &q) != nil {
		return cardError("param.invalid")
	}
	k, bad := s.newCardLocked(c, q)
	if bad != nil {
		return *bad
	}
	r := s.deliverCardLocked(c, k, q)
	if r.status != http.StatusOK {
		delete(s.cards, k.id)
	}
	return r
}

func (s *Server) cardUpdate(c *call) response {
	var q cardRequest
	if json.Unmarshal(c.body, &q) != nil {
		return cardError("param.invalid")
	}
	k := s.cards[q.OutTrackID]
	switch {
	case q.OutTrackID == "":
		return cardError("param.outTrackIdEmpty")
	case k == nil:
		return cardError("param.cardNotExist")
	case q.CardData == nil && len(q.PrivateData) == 0:
		return cardError("param.cardDataAndPrivateDataBothEmpty")
	}
	if q.CardData != nil {
		if !q.CardUpdateOptions.UpdateCardDataByKey {
			k.params = map[string]string{}
		}
		maps.Copy(k.params, q.CardData.CardParamMap)
		if state := flowStates[q.CardData.CardParamMap["flowStatus"]]; state != "" {
			s.moveCardLocked(k, state)
		}
	}
	k.touched = s.nowLocked()
	k.updates++
	s.noteLocked(Entry{Kind: "card", Conversation: k.conversation, Detail: k.id + " updated"})
	return jsonResponse(map[string]any{"success": true, "result": true})
}

// moveCardLocked changes a card's state; a card that finishes counts as a reply.
func (s *Server) moveCardLocked(k *card, state string) {
	was := k.state
	k.state = state
	if state != CardFinished || was == CardFinished {
		return
	}
	text := k.params["content"]
	for _, key := range []string{"msgContent", "markdown", "text"} {
		if text == "" {
			text = k.params[key]
		}
	}
	s.postLocked(Reply{
		Conversation: k.conversation, MsgType: "card", Title: k.params["title"], Text: text, Via: "card", RobotCode: k.app.RobotCode,
		ProcessQueryKey: k.id, Bytes: len(text),
	})
}

func (s *Server) cardStream(c *call) response {
	var q struct {
		OutTrackID string `json:"outTrackId"`
		GUID       string `json:"guid"`
		Key        string `json:"key"`
		Content    string `json:"content"`
		IsFull     bool   `json:"isFull"`
		IsFinalize bool   `json:"isFinalize"`
		IsError    bool   `json:"isError"`
	}
	if json.Unmarshal(c.body, &q) != nil {
		return cardError("param.invalid")
	}
	k := s.cards[q.OutTrackID]
	switch {
	case k == nil || k.state == CardCreated:
		return cardError("param.stream.outTrackId")
	case q.Key == "":
		return cardError("param.stream.keyEmpty")
	case q.GUID == "":
		return cardError("param.stream.guidEmpty")
	case q.Content == "" && !q.IsFinalize && !q.IsError:
		return cardError("param.stream.contentEmpty")
	case len(q.Content) > maxStreamBytes:
		return cardError("param.stream.content")
	}
	done := jsonResponse(map[string]any{"success": true, "result": true})
	if k.guids[q.GUID] {
		s.noteLocked(Entry{Kind: "duplicate", Conversation: k.conversation, Detail: "guid seen: " + k.id})
		return done
	}
	if k.done() {
		s.violateLocked(Violation{Kind: CardAfterFinalize, Conversation: k.conversation, Detail: k.id + " is " + k.state})
		return done
	}
	k.guids[q.GUID] = true
	k.touched = s.nowLocked()
	k.updates++
	if q.IsFull {
		k.params[q.Key] = q.Content
	} else {
		k.params[q.Key] += q.Content
	}
	state := CardInputting
	switch {
	case q.IsError:
		state = CardFailed
	case q.IsFinalize:
		state = CardFinished
	}
	s.moveCardLocked(k, state)
	s.noteLocked(Entry{Kind: "card", Conversation: k.conversation, Detail: fmt.Sprintf("%s %s: %s", k.id, state, clip(k.params[q.Key]))})
	return done
}

// Click plays a person's click on a card's button and returns the callback's messageId. It is an error when the card
// does not exist, asks for no stream callback, or no connection subscribed to the topic.
func (s *Server) Click(outTrackID, user, action string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.cards[outTrackID]
	if k == nil {
		return "", fmt.Errorf("clicking on card %s: no such card", outTrackID)
	}
	if k.callback != "STREAM" {
		return "", fmt.Errorf("clicking on card %s: its callbackType is %q, not STREAM", outTrackID, k.callback)
	}
	to := s.pickLocked(k.app, TopicCard, 1)
	if len(to) == 0 {
		return "", errors.New("clicking on card " + outTrackID + ": no connection subscribed to " + TopicCard)
	}
	content, _ := json.Marshal(map[string]any{"cardPrivateData": map[string]any{
		"actionIds": []string{action}, "params": map[string]string{"action": action},
	}})
	kind, space := "IM_GROUP", k.conversation
	if g := s.groups[k.conversation]; g != nil && g.direct != "" {
		kind, space = "IM_ROBOT", g.direct
	}
	data, _ := json.Marshal(map[string]any{
		"type": "actionCallback", "outTrackId": k.id, "corpId": k.app.CorpID, "userId": user, "userIdType": 1,
		"spaceType": kind, "spaceId": space, "extension": "{}", "content": string(content),
	})
	p := &push{kind: pushCard, frameID: newFrameID(), topic: TopicCard, conn: to[0], card: k, wantsAck: true, note: "click " + action}
	s.registerLocked(p)
	to[0].enqueue(outFrame{bytes: s.frameLocked(to[0], TopicCard, p.frameID, string(data)), due: time.Now().Add(s.latencyLocked()), push: p})
	return p.frameID, nil
}

// cardAnsweredLocked takes the ack of a click: it may carry new data for the card.
func (s *Server) cardAnsweredLocked(p *push, ack Ack) {
	if ack.Took > 2*time.Second {
		s.violateLocked(p.violation(CardCallbackSlow, fmt.Sprintf("%s answered after %s", p.card.id, ack.Took.Round(time.Millisecond))))
	}
	var answer struct {
		Response struct {
			CardData struct {
				CardParamMap map[string]string `json:"cardParamMap"`
			} `json:"cardData"`
		} `json:"response"`
	}
	if json.Unmarshal([]byte(ack.Data), &answer) != nil {
		return // an empty answer changes nothing
	}
	maps.Copy(p.card.params, answer.Response.CardData.CardParamMap)
}
