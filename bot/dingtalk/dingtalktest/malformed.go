package dingtalktest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// MalformedFrame is one frame that breaks the protocol in one way.
type MalformedFrame struct {
	Name   string
	Bytes  []byte
	Binary bool
}

// MalformedFrames are the thirteen kinds of broken frames, in a fixed order. Two of them carry a message that can be
// understood all the same and ought to be answered: the one with createAt as a string, and the one of more than 1 MB.
// The messages in them belong to no conversation of a Server; PlayMalformed sends frames that do.
func MalformedFrames() []MalformedFrame {
	return malformed(func() map[string]any {
		return map[string]any{
			"conversationId": "cidMalformed==", "conversationType": "2", "conversationTitle": "Malformed", "msgId": newMsgID(),
			"senderNick": "User", "senderStaffId": "u0001", "senderId": "$:LWCP_v1:$u0001", "createAt": 1767168000045,
			"sessionWebhook": "http://127.0.0.1:1/robot/sendBySession?session=none", "sessionWebhookExpiredTime": 1767173400345,
			"robotCode": "dingsimapp0001", "msgtype": "text", "text": map[string]any{"content": " malformed"},
		}
	})
}

func malformed(payload func() map[string]any) []MalformedFrame {
	encode := func(v any) []byte {
		b, _ := json.Marshal(v) // maps of plain values
		return b
	}
	frame := func(data any, change func(frame, headers map[string]any)) []byte {
		headers := map[string]any{
			"appId": "0d7c1f7e-1111-4222-8333-c0ffee000001", "connectionId": "malformed", "contentType": "application/json",
			"messageId": newFrameID(), "time": "1767168000123", "topic": TopicBot,
		}
		f := map[string]any{"specVersion": "1.0", "type": "CALLBACK", "headers": headers, "data": data}
		if change != nil {
			change(f, headers)
		}
		return encode(f)
	}
	data := func() string { return string(encode(payload())) }
	with := func(key string, value any) string {
		p := payload()
		p[key] = value
		return string(encode(p))
	}
	whole := frame(data(), nil)
	huge := with("text", map[string]any{"content": strings.Repeat("long 长 ", 150_000)})
	return []MalformedFrame{
		{Name: "truncated JSON", Bytes: whole[:len(whole)/2]},
		{Name: "data is not JSON", Bytes: frame("certainly not JSON", nil)},
		{Name: "data is an object", Bytes: frame(payload(), nil)},
		{Name: "time is a number", Bytes: frame(data(), func(_, h map[string]any) { h["time"] = 1767168000123 })},
		{Name: "no headers", Bytes: frame(data(), func(f, _ map[string]any) { delete(f, "headers") })},
		{Name: "no messageId", Bytes: frame(data(), func(_, h map[string]any) { delete(h, "messageId") })},
		{Name: "no topic", Bytes: frame(data(), func(_, h map[string]any) { delete(h, "topic") })},
		{Name: "header in the singular", Bytes: frame(data(), func(f, h map[string]any) { delete(f, "headers"); f["header"] = h })},
		{Name: "binary frame", Bytes: frame(data(), nil), Binary: true},
		{Name: "empty frame", Bytes: nil},
		{Name: "more than 1 MB", Bytes: frame(huge, nil)},
		{Name: "invalid UTF-8", Bytes: []byte(strings.Replace(string(frame(with("senderNick", "NICK"), nil)), "NICK", "\xff\xfe\xc0", 1))},
		{Name: "createAt is a string", Bytes: frame(with("createAt", "1767168000045"), nil)},
	}
}

// PlayMalformed sends all of MalformedFrames, or those named, to a live connection as messages of a conversation, and
// returns the names of those that were sent. No particular ack is expected of any.
func (s *Server) PlayMalformed(conversation string, names ...string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.apps[0]
	frames := malformed(func() map[string]any {
		m := Message{Conversation: conversation, Sender: "u0001", Text: "malformed", MsgID: newMsgID()}
		g := s.conversationLocked(m)
		s.lastSaid[g.ID] = s.nowLocked()
		return s.payloadLocked(m, g, a)
	})
	var sent []string
	for _, f := range frames {
		if len(names) > 0 && !slices.Contains(names, f.Name) {
			continue
		}
		var head struct {
			Headers struct {
				MessageID string `json:"messageId"`
			} `json:"headers"`
		}
		_ = json.Unmarshal(f.Bytes, &head) // a frame without an id has none to be acknowledged by
		if s.pushRawLocked(f.Bytes, f.Binary, head.Headers.MessageID, "malformed: "+f.Name) {
			s.noteLocked(Entry{Kind: "malformed", Conversation: conversation, Detail: fmt.Sprintf("%s, %d bytes", f.Name, len(f.Bytes))})
			sent = append(sent, f.Name)
		}
	}
	return sent
}
