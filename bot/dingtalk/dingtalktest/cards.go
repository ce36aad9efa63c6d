package dingtalktest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	CardCreated    = "created" // made, not yet delivered
	CardProcessing = "processing"
	CardInputting  = "inputting"
	CardFinished   = "finished"
	CardFailed     = "failed"
)

var flowStates = map[string]string{"1": CardProcessing, "2": CardInputting, "3": CardFinished, "5": CardFailed}

// DingTalk's documented limits of one variable; adapters exceed the second one routinely.
const (
	maxParamKey   = 100
	maxParamValue = 1 << 10
)

type cards struct {
	*core
	*people
	*posts
	*stream
	*openAPI
	templates map[string]CardTemplate
	byID      map[string]*card
	revision  int
}

func newCards(c *core, people *people, posts *posts, stream *stream, api *openAPI) *cards {
	s := &cards{
		core: c, people: people, posts: posts, stream: stream, openAPI: api,
		templates: map[string]CardTemplate{}, byID: map[string]*card{},
	}
	for _, t := range c.opts.CardTemplates {
		if t.Content == "" {
			t.Content = "content"
		}
		s.templates[t.ID] = t
	}
	return s
}

// core.mu guards every field of card.
type card struct {
	id, conversation string
	template         CardTemplate
	app              *app
	state            string
	params           map[string]string
	private          map[string]map[string]string // by person
	guids            map[string][sha256.Size]byte // hashes of the bodies of streaming calls that took effect
	updated          map[string]bool              // written by an update before any end
	callback         string
	key              string // processQueryKey of its message, once delivered
	mentioned        []string
	delivered        time.Time
	touched          time.Time
	frames           int
	shown            int // one more than the index of its reply, once it ended
	recalled         bool
	hidden           bool // too long to be shown
	blank            bool // reported as blank already
	clicks           int  // clicks without an answer
	findings         []Violation
	revision         int
}

func (k *card) done() bool { return k.state == CardFinished || k.state == CardFailed }

type cardRequest struct {
	CardTemplateID string              `json:"cardTemplateId"`
	OutTrackID     string              `json:"outTrackId"`
	CallbackType   string              `json:"callbackType"`
	OpenSpaceID    string              `json:"openSpaceId"`
	CardData       *cardData           `json:"cardData"`
	PrivateData    map[string]cardData `json:"privateData"`
	Options        cardUpdateOptions   `json:"cardUpdateOptions"`
	GroupDeliver   *deliverModel       `json:"imGroupOpenDeliverModel"`
	RobotDeliver   *deliverModel       `json:"imRobotOpenDeliverModel"`
}

type cardData struct {
	CardParamMap map[string]string `json:"cardParamMap"`
}

type cardUpdateOptions struct {
	UpdateCardDataByKey    bool `json:"updateCardDataByKey"`
	UpdatePrivateDataByKey bool `json:"updatePrivateDataByKey"`
}

type deliverModel struct {
	RobotCode string            `json:"robotCode"`
	SpaceType string            `json:"spaceType"`
	AtUserIDs map[string]string `json:"atUserIds"`
}

func cardError(code string) response { return apiError(http.StatusBadRequest, code, code) }

func cardDone() response { return jsonResponse(map[string]any{"success": true, "result": true}) }

func (s *cards) reportLocked(k *card, kind, detail string) {
	v := Violation{Kind: kind, Conversation: k.conversation, TrackID: k.id, Detail: k.id + ": " + detail}
	s.violateLocked(v)
	v.Time = s.nowLocked()
	k.findings = append(k.findings, v)
	s.touchLocked(k)
}

func (s *cards) touchLocked(k *card) {
	s.revision++
	k.revision = s.revision
	s.wakeLocked()
}

// adviseLocked records a use of a card that works although DingTalk advises against it.
func (s *cards) adviseLocked(k *card, kind, detail string) {
	k.findings = append(k.findings, Violation{
		Time: s.nowLocked(), Kind: kind, Conversation: k.conversation, TrackID: k.id, Detail: k.id + ": " + detail,
	})
	s.noteLocked(Entry{Kind: "advice", Conversation: k.conversation, Detail: kind + ": " + k.id + ": " + detail})
	s.touchLocked(k)
}

func (s *cards) newCardLocked(c *call, q cardRequest) (*card, *response) {
	template, known := s.templates[q.CardTemplateID]
	code := ""
	switch {
	case q.OutTrackID == "":
		code = "param.outTrackIdEmpty"
	case q.CardTemplateID == "":
		code = "param.cardTemplateIdEmpty"
	case !known:
		code = "param.templateNotExist"
	case template.Unpublished:
		code = "param.templateUnpublished"
	case s.byID[q.OutTrackID] != nil:
		code = "param.cardAlreadyExist"
	case q.CallbackType != "" && q.CallbackType != "STREAM" && q.CallbackType != "HTTP":
		code = "param.invalid"
	case q.CardData == nil:
		code = "param.empty"
	case s.opts.EnforceCardLimits && overLimit(q.CardData.CardParamMap) != "":
		code = "param.invalid"
	}
	if code != "" {
		return nil, badParam(code, code)
	}
	k := &card{
		id: q.OutTrackID, template: template, app: c.app, state: CardCreated, params: map[string]string{}, guids: map[string][sha256.Size]byte{},
		private: map[string]map[string]string{}, updated: map[string]bool{},
		callback: q.CallbackType, touched: s.nowLocked(),
	}
	maps.Copy(k.params, q.CardData.CardParamMap)
	s.byID[k.id] = k
	return k, nil
}

func overLimit(params map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(params)) {
		if n := len(params[key]); len(key) > maxParamKey || n > maxParamValue {
			return fmt.Sprintf("%s has %d bytes", key, n)
		}
	}
	return ""
}

func (s *cards) checkParamsLocked(k *card, params map[string]string) {
	if over := overLimit(params); over != "" {
		s.adviseLocked(k, CardOverLimit, over)
	}
	for _, key := range slices.Sorted(maps.Keys(params)) {
		if !k.template.has(key) && key != "flowStatus" && key != "sys_full_json_obj" {
			s.adviseLocked(k, CardUnknownVariable, key)
		}
	}
}

func space(id string) (kind, in string, ok bool) {
	kind, in, ok = strings.Cut(strings.TrimPrefix(id, "dtv1.card//"), ".")
	ok = ok && in != "" && strings.HasPrefix(id, "dtv1.card//") && (kind == "IM_GROUP" || kind == "IM_ROBOT")
	return kind, in, ok
}

// The code refuses a delivery as a whole; empty for none.
func (s *cards) deliveryFaultLocked(c *call, q cardRequest) (string, *deliverModel) {
	kind, _, ok := space(q.OpenSpaceID)
	model, other := q.GroupDeliver, q.RobotDeliver
	if kind == "IM_ROBOT" {
		model, other = other, model
	}
	switch {
	case q.OpenSpaceID == "":
		return "param.openSpaceIdEmpty", nil
	case !ok:
		return "param.openSpaceIdInvalid", nil
	case model == nil && other == nil:
		return "param.openDeliverModelEmpty", nil
	case model == nil, model.RobotCode != c.app.RobotCode, kind == "IM_ROBOT" && model.SpaceType != "IM_ROBOT":
		return "param.openDeliverModelError", nil
	}
	return "", model
}

// A delivery that fails does so inside a 200.
func (s *cards) deliverCardLocked(c *call, k *card, q cardRequest, model *deliverModel) response {
	kind, id, _ := space(q.OpenSpaceID)
	k.conversation = s.spaceLocked(q.OpenSpaceID)
	failure := ""
	g := s.groups[k.conversation]
	switch u := s.users[id]; {
	case c.fault.Card == "undelivered":
		failure = "the delivery failed"
	case kind == "IM_ROBOT" && (u == nil || u.External):
		failure = "the user does not exist"
	case kind == "IM_GROUP" && (g == nil || g.direct != ""):
		failure = "the conversation does not exist"
	case kind == "IM_GROUP" && !g.robots[model.RobotCode]:
		s.reportLocked(k, ReplyWrongPlace, model.RobotCode+" is not in the group")
		failure = "the robot is not in the group"
	case kind == "IM_GROUP" && g.Disbanded:
		failure = "the group is disbanded"
	}
	result := map[string]any{"spaceType": kind, "spaceId": id, "success": failure == "", "errorMsg": failure, "carrierId": ""}
	if failure == "" {
		k.key = s.sentLocked(c.app.RobotCode)
		s.keys[k.key].recalled = func() {
			k.recalled = true
			s.changedLocked(k, k.state)
		}
		result["carrierId"] = k.key
		s.appearLocked(k, model)
	} else {
		k.state = CardFailed
		s.noteLocked(Entry{Kind: "card", Conversation: k.conversation, Detail: k.id + " not delivered: " + failure})
	}
	return jsonResponse(map[string]any{
		"success": true, "result": map[string]any{"outTrackId": k.id, "deliverResults": []any{result}},
	})
}

func (s *cards) appearLocked(k *card, model *deliverModel) {
	k.delivered = s.nowLocked()
	k.mentioned = slices.Sorted(maps.Keys(model.AtUserIDs))
	for _, id := range k.mentioned {
		if g := s.groups[k.conversation]; g != nil && !s.memberLocked(g, id) {
			s.reportLocked(k, ReplyWrongPlace, "mentions "+id+", who is not in the conversation")
		}
	}
	if k.callback != "STREAM" {
		s.adviseLocked(k, CardNoCallback, fmt.Sprintf("callbackType is %q: clicks do not reach the bot", k.callback))
	}
	s.checkParamsLocked(k, k.params)
	s.noteLocked(Entry{Kind: "card", Conversation: k.conversation, Detail: k.id + " delivered"})
	state := CardProcessing
	if set := flowStates[k.params["flowStatus"]]; set != "" {
		state = set
	}
	s.changedLocked(k, state)
}

func (s *cards) cardCreate(c *call) response {
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

func (s *cards) cardDeliver(c *call) response {
	var q cardRequest
	if json.Unmarshal(c.body, &q) != nil {
		return cardError("param.invalid")
	}
	k := s.byID[q.OutTrackID]
	if k == nil || k.key != "" {
		return cardError("param.cardNotExist")
	}
	code, model := s.deliveryFaultLocked(c, q)
	if code != "" {
		return cardError(code)
	}
	return s.deliverCardLocked(c, k, q, model)
}

func (s *cards) cardSend(c *call) response {
	var q cardRequest
	if json.Unmarshal(c.body, &q) != nil {
		return cardError("param.invalid") // a value that is no string, too
	}
	code, model := s.deliveryFaultLocked(c, q)
	k, bad := s.newCardLocked(c, q)
	switch {
	case bad != nil:
		return *bad
	case code != "":
		delete(s.byID, k.id)
		return cardError(code)
	}
	return s.deliverCardLocked(c, k, q, model)
}

func (s *cards) cardUpdate(c *call) response {
	var q cardRequest
	if json.Unmarshal(c.body, &q) != nil {
		return cardError("param.invalid")
	}
	k := s.byID[q.OutTrackID]
	switch {
	case q.OutTrackID == "":
		return cardError("param.outTrackIdEmpty")
	case k == nil || k.app != c.app:
		return cardError("param.cardNotExist")
	case q.CardData == nil && len(q.PrivateData) == 0:
		return cardError("param.cardDataAndPrivateDataBothEmpty")
	case q.CardData != nil && s.opts.EnforceCardLimits && overLimit(q.CardData.CardParamMap) != "":
		return cardError("param.invalid")
	}
	if k.clicks > 0 {
		s.adviseLocked(k, CardUpdatedInCallback, "updated while a click waits for its answer")
	}
	for person, data := range q.PrivateData {
		k.writePrivate(person, data.CardParamMap, q.Options.UpdatePrivateDataByKey)
	}
	s.noteLocked(Entry{Kind: "card", Conversation: k.conversation, Detail: k.id + " updated"})
	if q.CardData != nil {
		s.writeLocked(k, q.CardData.CardParamMap, q.Options.UpdateCardDataByKey)
	}
	return cardDone()
}

func (k *card) writePrivate(person string, params map[string]string, byKey bool) {
	if !byKey || k.private[person] == nil {
		k.private[person] = map[string]string{}
	}
	maps.Copy(k.private[person], params)
}

// A write without byKey replaces all variables.
func (s *cards) writeLocked(k *card, params map[string]string, byKey bool) {
	s.checkParamsLocked(k, params)
	if !byKey {
		k.params = map[string]string{}
	}
	maps.Copy(k.params, params)
	if !k.done() {
		for key := range params {
			k.updated[key] = true
		}
	}
	state := k.state
	if set := flowStates[params["flowStatus"]]; set != "" && !k.delivered.IsZero() {
		state = set
	}
	if k.done() && state != k.state {
		s.reportLocked(k, CardAfterFinalize, "changed from "+k.state+" to "+state)
	}
	s.changedLocked(k, state)
}

func (s *cards) changedLocked(k *card, state string) {
	k.state = state
	k.touched = s.nowLocked()
	s.touchLocked(k)
	if k.key == "" {
		return // no people see it
	}
	k.hidden = s.tooLong(k.params[k.template.Content])
	text := k.content()
	if state == CardFinished && text == "" && !k.blank && (k.params[k.template.Content] != "" || k.shown > 0) {
		k.blank = true
		s.reportLocked(k, CardBlank, fmt.Sprintf("finished with %d bytes of content, and shows none", len(k.params[k.template.Content])))
	}
	switch {
	case k.shown > 0:
		s.editLocked(k.shown-1, text)
	case state == CardFinished, state == CardFailed && text != "":
		k.shown = len(s.replies) + 1
		s.postLocked(Reply{
			Conversation: k.conversation, MsgType: "card", Title: k.params["title"], Text: text, Via: "card", RobotCode: k.app.RobotCode,
			ProcessQueryKey: k.key, AtUserIDs: k.mentioned, Bytes: len(text),
		})
	}
}

type streamRequest struct {
	OutTrackID string `json:"outTrackId"`
	GUID       string `json:"guid"`
	Key        string `json:"key"`
	Content    string `json:"content"`
	IsFull     bool   `json:"isFull"`
	IsFinalize bool   `json:"isFinalize"`
	IsError    bool   `json:"isError"`
}

func (s *cards) cardStream(c *call) response {
	var q streamRequest
	if json.Unmarshal(c.body, &q) != nil {
		return cardError("param.invalid")
	}
	k := s.byID[q.OutTrackID]
	switch {
	case k == nil || k.key == "" || k.app != c.app:
		return cardError("param.stream.outTrackId")
	case q.Key == "":
		return cardError("param.stream.keyEmpty")
	case q.GUID == "":
		return cardError("param.stream.guidEmpty")
	case q.Content == "" && !q.IsFinalize && !q.IsError:
		return cardError("param.stream.contentEmpty")
	case !k.template.has(q.Key):
		return apiError(http.StatusInternalServerError, "unknownError", "the template has no variable "+q.Key)
	case !q.IsFull && q.Key == k.template.Content && !k.template.PlainText:
		return cardError("param.stream.isFull")
	case s.opts.CardContentBytes > 0 && len(q.Content) > s.opts.CardContentBytes:
		return apiError(http.StatusBadRequest, "param.stream.content", "content is too large")
	}
	sum := sha256.Sum256(c.body)
	if old, seen := k.guids[q.GUID]; seen {
		if old != sum {
			s.reportLocked(k, CardGUIDReused, "another call had the guid "+q.GUID)
		}
		s.noteLocked(Entry{Kind: "duplicate", Conversation: k.conversation, Detail: "guid seen: " + k.id})
		return cardDone()
	}
	if k.done() {
		s.reportLocked(k, CardAfterFinalize, "a streaming call on a card that is "+k.state)
		return cardError("param.invalid")
	}
	k.guids[q.GUID] = sum
	s.frameArrivedLocked(k, q)
	return cardDone()
}

func (s *cards) frameArrivedLocked(k *card, q streamRequest) {
	if k.updated[q.Key] {
		delete(k.updated, q.Key) // reported once for each update
		s.reportLocked(k, CardMixedWrites, q.Key+" is streamed after an update wrote it: frames do not show any more")
	}
	k.frames++
	switch {
	case q.IsFull && (q.Content != "" || !q.IsFinalize && !q.IsError):
		k.params[q.Key] = q.Content
	default:
		k.params[q.Key] += q.Content // an empty last frame leaves the text as it is
	}
	if q.Key == k.template.Content && !k.template.PlainText && openFence(k.params[q.Key]) {
		s.reportLocked(k, CardBrokenMarkdown, "a frame leaves a code fence open")
	}
	state := CardInputting
	switch {
	case q.IsError:
		state = CardFailed
	case q.IsFinalize:
		state = CardFinished
	}
	s.noteLocked(Entry{Kind: "card", Conversation: k.conversation, Detail: fmt.Sprintf("%s %s: %s", k.id, state, clip(k.params[q.Key]))})
	s.changedLocked(k, state)
}
