package dingtalktest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

type sentMessage struct {
	robot    string
	replies  []int  // indexes of posts.replies
	recalled func() // called with mu held
}

type openAPI struct {
	*core
	*people
	*posts
	*messages
	tokens      map[string]*token
	keys        map[string]*sentMessage
	processKey  int
	emotions    map[string][]string // names on a message
	emotionTry  map[string]int
	callsBound  bool // The month's calls are bounded, see LeaveAPICalls.
	callsByCard map[string]int
	uploads     map[string]*file // by media id
}

var messageParams = map[string][]string{
	"sampleText": {"content"}, "sampleMarkdown": {"title", "text"}, "sampleImageMsg": {"photoURL"},
	"sampleLink": {"title", "text"}, "sampleActionCard": {"title", "text"}, "sampleActionCard2": {"title", "text"},
	"sampleActionCard3": {"title", "text"}, "sampleActionCard4": {"title", "text"}, "sampleActionCard5": {"title", "text"},
	"sampleActionCard6": {"title", "text"}, "sampleAudio": {"mediaId"}, "sampleFile": {"mediaId", "fileType", "fileName"}, "sampleVideo": {"videoMediaId"},
}

const maxMsgParam = 15000

type sendRequest struct {
	RobotCode          string   `json:"robotCode"`
	OpenConversationID string   `json:"openConversationId"`
	UserIDs            []string `json:"userIds"`
	MsgKey             string   `json:"msgKey"`
	MsgParam           string   `json:"msgParam"`
}

func badParam(code, message string) *response {
	r := apiError(http.StatusBadRequest, code, message)
	return &r
}

// sent is what a message of the open API shows.
type sent struct{ title, text, media string }

func (s *openAPI) readSendLocked(c *call) (q sendRequest, m sent, bad *response) {
	if json.Unmarshal(c.body, &q) != nil {
		return q, m, badParam("invalidParameter", "the body cannot be read")
	}
	keys := messageParams[q.MsgKey]
	var params map[string]string
	switch {
	case q.RobotCode == "":
		bad = badParam("invalidParameter.robotCode.empty", "robotCode is empty")
	case s.appByRobotLocked(q.RobotCode) == nil:
		bad = badParam("invalidParameter.robotCode.notExsit", "no such robot")
	case s.appByRobotLocked(q.RobotCode) != c.app:
		bad = badParam("invalidParameter.robotCode.auth", "the robot is not the application's")
	case keys == nil:
		bad = badParam("invalidParameter.msgKey.invalid", "unknown msgKey "+q.MsgKey)
	case len(q.MsgParam) > maxMsgParam:
		bad = badParam("invalidParameter.msgParam.tooLong", fmt.Sprintf("msgParam has %d bytes", len(q.MsgParam)))
	case json.Unmarshal([]byte(q.MsgParam), &params) != nil:
		bad = badParam("invalidParameter.msgParam.invalid", "msgParam is no JSON object of strings")
	default:
		for _, k := range keys {
			if params[k] == "" {
				return q, m, badParam("invalidParameter.msgParam.invalid", k+" is missing")
			}
		}
		if len(keys) == 2 {
			m.title = params[keys[0]]
		}
		m.text = params[keys[len(keys)-1]]
		m.media = params["mediaId"]
		if url := params["photoURL"]; strings.HasPrefix(url, "@") {
			m.media = url
		}
		if f := s.uploads[m.media]; m.media != "" && (f == nil || f.app != c.app) {
			return q, m, badParam("invalidParameter.msgParam.invalid", "the media id is wrong or has expired")
		}
	}
	return q, m, bad
}

// ExpireMedia ends the media ids of all uploads.
func (s *openAPI) ExpireMedia() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.uploads)
}

func (s *openAPI) groupSend(c *call) response {
	q, m, bad := s.readSendLocked(c)
	if bad != nil {
		return *bad
	}
	g := s.groups[q.OpenConversationID]
	switch {
	case q.OpenConversationID == "":
		return *badParam("miss.openConversationId", "openConversationId is missing")
	case g == nil:
		return *badParam("invalid.openConversationId", "no such conversation")
	case g.direct != "":
		s.violateLocked(Violation{Kind: ReplyWrongPlace, Conversation: g.ID, Detail: "a one-to-one conversation cannot be sent to as a group"})
		return *badParam("invalid.openConversationId", "not a group")
	case !g.robots[q.RobotCode]:
		s.violateLocked(Violation{Kind: ReplyWrongPlace, Conversation: g.ID, Detail: q.RobotCode + " is not in the group"})
		return *badParam("bot.forbidden.sendMessage", "the robot is not in the group")
	case g.Disbanded:
		return *badParam("group.disbanded", "the group is disbanded")
	}
	key := s.sentLocked(q.RobotCode)
	s.postKeyedLocked(key, Reply{Conversation: g.ID, MsgType: q.MsgKey, Title: m.title, Text: m.text, Media: m.media, Via: "openapi", RobotCode: q.RobotCode, Bytes: len(q.MsgParam)})
	return jsonResponse(map[string]string{"processQueryKey": key})
}

func (s *openAPI) directSend(c *call) response {
	q, m, bad := s.readSendLocked(c)
	if bad != nil {
		return *bad
	}
	switch {
	case len(q.UserIDs) == 0:
		return *badParam("invalidParameter.userIds.empty", "userIds is empty")
	case len(q.UserIDs) > 20:
		return *badParam("invalidParameter.userIds.overMax", "more than 20 users")
	}
	key := s.sentLocked(q.RobotCode)
	invalid := []string{}
	for _, id := range q.UserIDs {
		if u := s.users[id]; u == nil || u.External {
			invalid = append(invalid, id)
			continue
		}
		s.postKeyedLocked(key, Reply{
			Conversation: s.directLocked(id), MsgType: q.MsgKey, Title: m.title, Text: m.text, Media: m.media, Via: "openapi",
			RobotCode: q.RobotCode, Bytes: len(q.MsgParam),
		})
	}
	return jsonResponse(map[string]any{"processQueryKey": key, "invalidStaffIdList": invalid, "flowControlledStaffIdList": []string{}})
}

func (s *openAPI) sentLocked(robot string) string {
	s.processKey++
	key := fmt.Sprintf("pqk%s%04d", randomHex(4), s.processKey)
	s.keys[key] = &sentMessage{robot: robot}
	return key
}

func (s *openAPI) postKeyedLocked(key string, r Reply) {
	r.ProcessQueryKey = key
	s.keys[key].replies = append(s.keys[key].replies, len(s.replies))
	s.postLocked(r)
}

func (s *openAPI) recall(c *call) response {
	var q struct {
		RobotCode        string   `json:"robotCode"`
		ProcessQueryKeys []string `json:"processQueryKeys"`
	}
	if json.Unmarshal(c.body, &q) != nil || len(q.ProcessQueryKeys) == 0 || len(q.ProcessQueryKeys) > 20 {
		return *badParam("invalidParameter.processQueryKeys", "one to 20 keys are needed")
	}
	done, failed := []string{}, map[string]string{}
	for _, key := range q.ProcessQueryKeys {
		m := s.keys[key]
		if m == nil || m.robot != q.RobotCode {
			failed[key] = "no such message"
			continue
		}
		for _, i := range m.replies {
			s.replies[i].Recalled = true
		}
		if m.recalled != nil {
			m.recalled()
		}
		done = append(done, key)
	}
	s.wakeLocked()
	return jsonResponse(map[string]any{"successResult": done, "failedResult": failed})
}

type emotionRequest struct {
	RobotCode   string `json:"robotCode"`
	EmotionType int    `json:"emotionType"`
	EmotionName string `json:"emotionName"`
	TextEmotion struct {
		EmotionID    string `json:"emotionId"`
		EmotionName  string `json:"emotionName"`
		Text         string `json:"text"`
		BackgroundID string `json:"backgroundId"`
	} `json:"textEmotion"`
}

func (q emotionRequest) whole() bool {
	t := q.TextEmotion
	return q.RobotCode != "" && q.EmotionType == 2 && q.EmotionName != "" &&
		t.EmotionID != "" && t.EmotionName == q.EmotionName && t.Text != "" && t.BackgroundID != ""
}

// EmotionsLeft are the ids of messages with the bot's reaction.
func (s *openAPI) EmotionsLeft() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for id, names := range s.emotions {
		if len(names) > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (s *openAPI) emotion(c *call) response {
	var q emotionRequest
	if json.Unmarshal(c.body, &q) != nil || c.head.OpenMsgID == "" || c.head.OpenConversationID == "" || !q.whole() {
		return *badParam("invalidParameter", "openMsgId, openConversationId, robotCode, emotionType 2, emotionName and textEmotion are needed")
	}
	id := c.head.OpenMsgID
	d := s.deliveries[deliveryKey{q.RobotCode, id}]
	if d == nil || d.conversation != c.head.OpenConversationID {
		return apiError(http.StatusInternalServerError, "system.err", "no such message")
	}
	if s.emotionTry[id]++; s.emotionTry[id] <= s.opts.EmotionFailures {
		return apiError(http.StatusInternalServerError, "system.err", "too soon after the message")
	}
	if q.RobotCode != c.app.RobotCode {
		return apiError(http.StatusInternalServerError, "system.err", "another robot's message")
	}
	if c.route == RouteEmotion && slices.Contains(s.emotions[id], q.EmotionName) {
		s.violateLocked(Violation{Kind: EmotionTwice, Conversation: d.conversation, MsgID: id, Detail: q.EmotionName + " is on the message already"})
	}
	names := slices.DeleteFunc(s.emotions[id], func(name string) bool { return name == q.EmotionName })
	if c.route == RouteEmotion {
		names = append(names, q.EmotionName)
	}
	s.emotions[id] = names
	s.noteLocked(Entry{Kind: "emotion", Route: c.route, MsgID: id, Conversation: d.conversation, Detail: q.EmotionName})
	return jsonResponse(map[string]bool{"success": true})
}

// Emotion reports whether a message has a reaction of the bot.
func (s *openAPI) Emotion(msgID string) bool { return len(s.Emotions(msgID)) > 0 }

// Emotions are the bot's reactions on a message, oldest first.
func (s *openAPI) Emotions(msgID string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.emotions[msgID])
}

type token struct {
	value   string
	app     *app
	expires time.Time
	revoked bool
}

func (s *openAPI) fetchTokenLocked(a *app) *token {
	now := s.nowLocked()
	a.tokenFetches++
	excused := a.tokenExcuses > 0
	a.tokenExcuses = max(a.tokenExcuses-1, 0)
	for _, t := range s.tokens {
		if t.app != a || t.revoked || now.After(t.expires) {
			continue
		}
		left := t.expires.Sub(now)
		if !excused && left > s.opts.TokenTTL/4 {
			s.violateLocked(Violation{Kind: TokenWasted, Detail: fmt.Sprintf("%s fetched a token while its last had %s to live", a.ClientID, left.Round(time.Second))})
		}
		t.expires = now.Add(s.opts.TokenTTL)
		return t
	}
	t := &token{value: randomHex(16), app: a, expires: now.Add(s.opts.TokenTTL)}
	s.tokens[t.value] = t
	return t
}

func (s *openAPI) accessToken(c *call) response {
	var q struct {
		AppKey    string `json:"appKey"`
		AppSecret string `json:"appSecret"`
	}
	_ = json.Unmarshal(c.body, &q) // an unreadable body has no credentials
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.appByClientLocked(q.AppKey)
	if a == nil || a.ClientSecret != q.AppSecret {
		return apiError(http.StatusBadRequest, "invalidClientIdOrSecret", "无效的clientId或者clientSecret")
	}
	return jsonResponse(map[string]any{"accessToken": s.fetchTokenLocked(a).value, "expireIn": int(s.opts.TokenTTL.Seconds())})
}

func (s *openAPI) getToken(c *call) response {
	q := c.r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.appByClientLocked(q.Get("appkey"))
	if a == nil || a.ClientSecret != q.Get("appsecret") {
		return hookError(40089, "不合法的corpid或corpsecret")
	}
	return jsonResponse(map[string]any{
		"errcode": 0, "errmsg": "ok", "access_token": s.fetchTokenLocked(a).value, "expires_in": int(s.opts.TokenTTL.Seconds()),
	})
}

// RevokeTokens ends every access token before its time.
func (s *openAPI) RevokeTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tokens {
		t.revoked = true
		t.app.tokenExcuses++
	}
	s.noteLocked(Entry{Kind: "fault", Detail: "access tokens revoked"})
}

func (s *openAPI) tokenLocked(value string) *token {
	t := s.tokens[value]
	if t == nil {
		return nil
	}
	if t.revoked || s.nowLocked().After(t.expires) {
		t.app.tokenExcuses++
		return nil
	}
	return t
}

// api wraps a route in the token, the rate limit and the monthly budget. f runs with s.mu held.
func (s *openAPI) api(f func(*call) response) func(*call) response {
	return func(c *call) response {
		s.mu.Lock()
		defer s.mu.Unlock()
		t := s.tokenLocked(c.r.Header.Get("x-acs-dingtalk-access-token"))
		if t == nil {
			return apiError(http.StatusBadRequest, "InvalidAuthentication", "不合法的access_token")
		}
		c.app = t.app
		if r, limited := s.apiLimitLocked(c); limited {
			return r
		}
		return f(c)
	}
}

func (s *openAPI) apiLimitLocked(c *call) (response, bool) {
	name := "api " + c.app.ClientID + " " + c.route
	if n := s.opts.APIQPS; n > 0 && s.rateLocked(name, time.Second) > n {
		s.forgetLastLocked(name) // refused calls do not count
		return apiError(http.StatusForbidden, "Forbidden.AccessDenied.QpsLimitForAppkeyAndApi", "too many calls of this API by this application"), true
	}
	if used := s.orgCallsLocked(c.app.CorpID); (s.opts.EnforceQuotas || s.callsBound) && used >= s.opts.APIQuota {
		return apiError(http.StatusForbidden, "Forbidden.AccessDenied.ApiCountLimitForOrg", "the monthly quota is used up"), true
	}
	s.countLocked(c)
	return response{}, false
}

func (s *openAPI) countLocked(c *call) {
	c.app.apiCalls++
	c.app.apiByRoute[c.route]++
	if id := c.head.OutTrackID; id != "" {
		s.callsByCard[id]++
	}
}

// A call that a fault answers with an error counts, since DingTalk took it.
func (s *openAPI) countRefused(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tokenLocked(c.r.Header.Get("x-acs-dingtalk-access-token")); t != nil {
		c.app = t.app
		s.countLocked(c)
	}
}

// LeaveAPICalls leaves n calls for the rest of the month. Calls beyond are refused with 403 and do not count.
func (s *openAPI) LeaveAPICalls(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callsBound = true
	s.opts.APIQuota = s.orgCallsLocked(s.apps[0].CorpID) + n
	s.noteLocked(Entry{Kind: "fault", Detail: fmt.Sprintf("%d calls left in the month", n)})
}

// CallsCounted are the budget's calls by route, without those refused for rate or budget.
func (s *openAPI) CallsCounted() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int{}
	for _, a := range s.apps {
		for route, n := range a.apiByRoute {
			out[route] += n
		}
	}
	return out
}
