package dingtalktest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A session webhook belongs to one message in one conversation.
type session struct {
	group   *group
	app     *app
	msgID   string
	expires time.Time
	revoked bool // ended by the simulator before its time
	posts   int
}

type webhooks struct {
	*core
	*people
	*posts
	sessions map[string]*session
	uuids    map[string]bool
	blocked  map[string]time.Time // end of the refusal by conversation
}

func (s *webhooks) sessionLocked(g *group, a *app, msgID string, expires time.Time) string {
	id := randomHex(16)
	s.sessions[id] = &session{group: g, app: a, msgID: msgID, expires: expires}
	return s.URL + "/robot/sendBySession?session=" + id
}

// ExpireWebhooks ends the present webhooks of a conversation, or of all when it is empty: they answer errcode 300001.
func (s *webhooks) ExpireWebhooks(conversation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, se := range s.sessions {
		if conversation == "" || se.group.ID == conversation {
			se.revoked = true
		}
	}
	s.noteLocked(Entry{Kind: "fault", Conversation: conversation, Detail: "webhooks expired"})
}

// ForgetMsgUUIDs sets [Options.IgnoreMsgUUID] from now on.
func (s *webhooks) ForgetMsgUUIDs() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.IgnoreMsgUUID = true
	s.noteLocked(Entry{Kind: "fault", Detail: "msgUuid means nothing"})
}

type webhookBody struct {
	MsgType string `json:"msgtype"`
	MsgUUID string `json:"msgUuid"`
	Text    struct {
		Content string `json:"content"`
	} `json:"text"`
	Markdown   titled `json:"markdown"`
	ActionCard titled `json:"actionCard"`
	Link       titled `json:"link"`
	FeedCard   struct {
		Links []titled `json:"links"`
	} `json:"feedCard"`
	At struct {
		AtUserIDs     []string `json:"atUserIds"`
		AtMobiles     []string `json:"atMobiles"`
		AtDingtalkIDs []string `json:"atDingtalkIds"`
		IsAtAll       bool     `json:"isAtAll"`
	} `json:"at"`
}

type titled struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

func (b webhookBody) words() (title, text string, ok bool) {
	switch b.MsgType {
	case "text":
		return "", b.Text.Content, b.Text.Content != ""
	case "markdown":
		return b.Markdown.Title, b.Markdown.Text, b.Markdown.Text != "" && b.Markdown.Title != ""
	case "actionCard":
		return b.ActionCard.Title, b.ActionCard.Text, b.ActionCard.Text != ""
	case "link":
		return b.Link.Title, b.Link.Text, b.Link.Text != ""
	case "feedCard":
		var titles []string
		for _, l := range b.FeedCard.Links {
			titles = append(titles, l.Title)
		}
		return "", strings.Join(titles, "\n"), len(titles) > 0
	case "empty":
		return "", "", true
	}
	return "", "", false
}

func (s *webhooks) sendBySession(c *call) response {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, bad := s.webhookShapeLocked(c); bad {
		return r
	}
	se := s.sessions[c.r.URL.Query().Get("session")]
	switch {
	case se == nil:
		s.violateLocked(Violation{Kind: WebhookUnknown, Detail: "no such session"})
		return hookError(300001, "session 不存在")
	case se.revoked:
		return hookError(300001, "session 不存在")
	case s.nowLocked().After(se.expires):
		s.violateLocked(Violation{
			Kind: WebhookExpired, MsgID: se.msgID, Conversation: se.group.ID,
			Detail: fmt.Sprintf("expired %s ago", s.nowLocked().Sub(se.expires).Round(time.Second)),
		})
		return hookError(300001, "session 不存在")
	}
	return s.postHookLocked(c, se.group, se, "webhook")
}

// The access_token of a group's own bot is the group's id.
func (s *webhooks) sendCustom(c *call) response {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, bad := s.webhookShapeLocked(c); bad {
		return r
	}
	g := s.groups[c.r.URL.Query().Get("access_token")]
	if g == nil {
		return hookError(400101, "the token does not exist")
	}
	return s.postHookLocked(c, g, &session{group: g}, "custom")
}

func (s *webhooks) webhookShapeLocked(c *call) (response, bool) {
	if !strings.HasPrefix(c.r.Header.Get("Content-Type"), "application/json") {
		return hookError(43004, "Content-Type has to be application/json"), true
	}
	if len(c.body) == 0 {
		return hookError(40035, "the body is missing"), true
	}
	if n := s.opts.WebhookMaxBytes; n > 0 && len(c.body) > n {
		return hookError(460101, fmt.Sprintf("message too long, exceed %d bytes", n)), true
	}
	return response{}, false
}

func (s *webhooks) postHookLocked(c *call, g *group, se *session, via string) response {
	var b webhookBody
	if err := json.Unmarshal(c.body, &b); err != nil {
		return hookError(40035, "the body is no JSON object of a message")
	}
	title, text, ok := b.words()
	switch {
	case !ok:
		return hookError(400105, "unsupported or empty msgtype "+b.MsgType)
	case g.Disbanded:
		return hookError(400013, "the group is disbanded")
	}
	uuid := c.r.URL.Query().Get("session") + c.r.URL.Query().Get("access_token") + " " + b.MsgUUID
	if b.MsgUUID != "" && !s.opts.IgnoreMsgUUID && s.uuids[uuid] {
		s.noteLocked(Entry{Kind: "duplicate", Conversation: g.ID, MsgID: se.msgID, Detail: "msgUuid seen: not posted again"})
		return hookError(0, "ok")
	}
	if r, limited := s.webhookLimitLocked(g); limited {
		return r
	}
	if se.app != nil {
		se.app.streamUse++
		if s.opts.EnforceQuotas && se.app.streamUse > s.opts.StreamQuota {
			return hookError(90030, "the webhook quota is used up")
		}
	}
	if b.MsgUUID != "" {
		s.uuids[uuid] = true
	}
	if b.MsgType == "empty" {
		return hookError(0, "ok")
	}
	s.checkMentionsLocked(g, se.msgID, text, b)
	robot := ""
	if se.app != nil {
		robot = se.app.RobotCode
	}
	se.posts++
	if n := s.opts.RepliesPerMessage; n > 0 && se.posts > n {
		s.violateLocked(Violation{
			Kind: ReplyTwice, MsgID: se.msgID, Conversation: g.ID,
			Detail: fmt.Sprintf("%d posts for one message: %s", se.posts, clip(text)),
		})
	}
	s.postLocked(Reply{
		Conversation: g.ID, MsgID: se.msgID, MsgType: b.MsgType, Title: title, Text: text, AtUserIDs: b.At.AtUserIDs,
		AtAll: b.At.IsAtAll, Via: via, MsgUUID: b.MsgUUID, RobotCode: robot, Bytes: len(c.body),
	})
	return hookError(0, "ok")
}

func (s *webhooks) webhookLimitLocked(g *group) (response, bool) {
	if s.opts.WebhookPerMinute < 0 {
		return response{}, false
	}
	tooFast := hookError(130101, fmt.Sprintf("send too fast, exceed %d times per minute", s.opts.WebhookPerMinute))
	if until, ok := s.blocked[g.ID]; ok && s.nowLocked().Before(until) {
		return tooFast, true
	}
	name := "webhook " + g.ID
	if s.rateLocked(name, time.Minute) > s.opts.WebhookPerMinute {
		s.forgetLastLocked(name)
		if s.opts.WebhookBlock > 0 {
			s.blocked[g.ID] = s.nowLocked().Add(s.opts.WebhookBlock)
		}
		return tooFast, true
	}
	return response{}, false
}

func (s *webhooks) checkMentionsLocked(g *group, msgID, text string, b webhookBody) {
	ids := append(append([]string(nil), b.At.AtUserIDs...), b.At.AtDingtalkIDs...)
	for _, id := range ids {
		if !s.memberLocked(g, id) {
			s.violateLocked(Violation{Kind: ReplyWrongPlace, MsgID: msgID, Conversation: g.ID, Detail: "mentions " + id + ", who is not in the conversation"})
		}
	}
	if b.MsgType != "text" && b.MsgType != "markdown" && b.MsgType != "actionCard" {
		return
	}
	for _, id := range append(ids, b.At.AtMobiles...) {
		if !hasLiteral(text, id) {
			s.violateLocked(Violation{Kind: MentionNotInText, MsgID: msgID, Conversation: g.ID, Detail: "@" + id + " is not in the text"})
		}
	}
}
