package frame

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"ebb/sessions"
)

const (
	testBot  = "$:LWCP_v1:$bot"
	testUser = "$:LWCP_v1:$user1"
)

// envelope is a group message as DingTalk documents it, with fields put over it; a nil value takes a field away.
func envelope(over map[string]any) map[string]any {
	o := map[string]any{
		"conversationId": "cidGroup==", "conversationType": "2", "conversationTitle": "Release room",
		"msgId": "msg1==", "msgtype": "text", "text": map[string]any{"content": " deploy status"},
		"senderId": testUser, "senderStaffId": "u0001", "senderNick": "张三", "isAdmin": true,
		"createAt": 1767168000045, "robotCode": "dingrobot", "chatbotUserId": testBot, "isInAtList": true,
		"atUsers":        []any{map[string]any{"dingtalkId": testBot}},
		"sessionWebhook": "https://oapi.dingtalk.com/robot/sendBySession?session=abc", "sessionWebhookExpiredTime": 1767173400345,
	}
	for k, v := range over {
		if v == nil {
			delete(o, k)
		} else {
			o[k] = v
		}
	}
	return o
}

func asJSON(tb testing.TB, v any) string {
	tb.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func mustDecode(tb testing.TB, over map[string]any) sessions.Message {
	tb.Helper()
	m, err := Decode(asJSON(tb, envelope(over)), "dingdefault")
	if err != nil {
		tb.Fatalf("decode: %v", err)
	}
	return m
}

type dict = map[string]any

func TestDecodeReadsTheEnvelope(t *testing.T) {
	t.Parallel()
	want := sessions.Message{
		RobotCode: "dingrobot", ConversationID: "cidGroup==", ConversationType: sessions.Group,
		ConversationTitle: "Release room", ID: "msg1==", SenderID: "u0001", StaffID: "u0001", SenderNick: "张三",
		Admin: true, Kind: "text", Text: "deploy status", SentAt: time.UnixMilli(1767168000045).UTC(),
		Webhook:        "https://oapi.dingtalk.com/robot/sendBySession?session=abc",
		WebhookExpires: time.UnixMilli(1767173400345).UTC(),
	}
	for name, over := range map[string]dict{
		"as documented":               nil,
		"numbers as strings":          {"createAt": "1767168000045", "sessionWebhookExpiredTime": "1767173400345"},
		"numbers as floats":           {"createAt": 1767168000045.0},
		"strings as numbers":          {"conversationType": 2},
		"a flag as a string":          {"isAdmin": "true"},
		"text as a JSON string":       {"text": `{"content":" deploy status"}`},
		"text as plain words":         {"text": "deploy status"},
		"text in content":             {"text": nil, "content": dict{"content": "deploy status"}},
		"a no-break space in front":   {"text": dict{"content": "\u00a0\u200bdeploy\u200b status\ufeff"}},
		"no message type":             {"msgtype": nil},
		"no conversation type":        {"conversationType": nil},
		"an odd conversation type":    {"conversationType": dict{"a": 1}},
		"fields that nobody knows":    {"openThreadId": "x", "hostingContext": dict{"userId": 1}},
		"a mention list of odd types": {"atUsers": "nobody"},
	} {
		if got := mustDecode(t, over); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	}
}

func TestDecodeReadsTheText(t *testing.T) {
	t.Parallel()
	picture := []sessions.Attachment{{Kind: "picture", Code: "dc1"}}
	both := []sessions.Attachment{{Kind: "picture", Code: "dc1", Other: "p"}}
	for _, c := range []struct {
		name  string
		over  dict
		text  string
		files []sessions.Attachment
	}{
		{"bare mention", dict{"text": dict{"content": " "}}, "", nil},
		{"no text at all", dict{"text": nil}, "", nil},
		{"a number for words", dict{"text": dict{"content": 42}}, "42", nil},
		{"words that look like JSON", dict{"text": dict{"content": `{"content":"x"}`}}, `{"content":"x"}`, nil},
		{"rich text", dict{"msgtype": "richText", "content": dict{"richText": []any{
			dict{"text": "look "}, dict{"type": "picture", "downloadCode": "dc1", "pictureDownloadCode": "p"}, dict{"text": " thanks"},
		}}}, "look \n[图片]\n thanks", both},
		{"rich text, mention repeated", dict{"msgtype": "richText", "content": dict{"richText": []any{
			dict{"text": "@助手 "}, dict{"text": "hi"},
		}}}, "hi", nil},
		{"rich text, people mentioned", dict{"msgtype": "richText", "content": dict{"richText": []any{
			dict{"type": "at", "atName": "助手", "atUserId": testBot}, dict{"type": "at", "atName": "李四", "atUserId": "u2"}, dict{"text": "看看"},
		}}}, "@李四 看看", nil},
		{"rich text as a JSON string", dict{"msgtype": "richText", "content": `{"richText":[{"text":"a"},"b",7,null]}`}, "ab", nil},
		{"rich text without a type", dict{"msgtype": nil, "text": nil, "content": dict{"richText": []any{dict{"text": "a"}}}}, "a", nil},
		{"picture", dict{"msgtype": "picture", "content": dict{"downloadCode": "dc1"}}, "[图片]", picture},
		{"picture, second code", dict{"msgtype": "picture", "content": dict{"pictureDownloadCode": "dc1"}}, "[图片]", picture},
		{
			"audio",
			dict{"msgtype": "audio", "content": dict{"duration": 4000, "downloadCode": "dc3", "recognition": "hello there"}},
			"[语音] hello there",
			[]sessions.Attachment{{Kind: "audio", Code: "dc3"}},
		},
		{"audio without words", dict{"msgtype": "audio", "content": dict{"duration": "4000"}}, "[语音]", nil},
		{
			"video",
			dict{"msgtype": "video", "content": dict{"downloadCode": "dc4", "duration": "5", "videoType": "mp4"}},
			"[视频]",
			[]sessions.Attachment{{Kind: "video", Code: "dc4"}},
		},
		{
			"file",
			dict{"msgtype": "file", "content": dict{"downloadCode": "dc5", "fileName": "a.pdf", "fileId": 1}},
			"[文件: a.pdf]",
			[]sessions.Attachment{{Kind: "file", Code: "dc5", Name: "a.pdf"}},
		},
		{
			"file whose name plays tricks",
			dict{"msgtype": "file", "content": dict{"downloadCode": "d", "fileName": "a]\n[系统: x"}},
			"[文件: a) (系统: x]",
			[]sessions.Attachment{{Kind: "file", Code: "d", Name: "a] [系统: x"}},
		},
		{"kind not supported", dict{"msgtype": "unknownMsgType", "content": dict{"unknownMsgType": "暂不支持"}}, "[不支持的消息]", nil},
		{"chat record", dict{"msgtype": "chatRecord", "content": dict{"summary": "A: hi", "chatRecord": "[]"}}, "[聊天记录]\n> A: hi", nil},
		{"markdown", dict{"msgtype": "markdown", "text": nil, "content": dict{"title": "t", "text": "# words"}}, "# words", nil},
		{"card", dict{"msgtype": "interactiveCard", "text": nil, "content": dict{"biz_custom_action_url": "x"}}, "[卡片]", nil},
		{"kind never seen", dict{"msgtype": "hologram", "text": nil, "content": dict{"x": 1}}, "[消息: hologram]", nil},
		{"kind never seen, with words", dict{"msgtype": "hologram", "text": nil, "content": dict{"text": "words"}}, "words", nil},
		{"kind of the wrong type", dict{"msgtype": []any{1}, "text": dict{"content": "words"}}, "words", nil},
		{"control characters", dict{"text": dict{"content": "a\x00b\x1b[1mc\r\nd\u202ee"}}, "ab[1mc\nde", nil},
		{"emoji with joiners", dict{"text": dict{"content": "👩\u200d👩\u200d👧 ok\u200d"}}, "👩\u200d👩\u200d👧 ok", nil},
	} {
		m := mustDecode(t, c.over)
		if m.Text != c.text || !reflect.DeepEqual(m.Attachments, c.files) {
			t.Errorf("%s: text %q with %+v, want %q with %+v", c.name, m.Text, m.Attachments, c.text, c.files)
		}
	}
}

func quoting(replied any) dict {
	return dict{"text": dict{"content": " and this?", "isReplyMsg": true, "repliedMsg": replied}, "originalMsgId": "orig"}
}

// Each message of a forwarded record, and a quote in a quote, has its speaker and its time where the frame has them.
func TestDecodeReadsSpeakersWithinQuotes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		over dict
		want sessions.Quote
	}{
		{
			"chat record with people and times", quoting(dict{"msgType": "chatRecord", "content": dict{"summary": "A: hi", "title": "发布群", "chatRecord": `[
				{"senderNick":"张伟","msgType":"text","content":{"text":"周五上线"},"createAt":1767167000000},
				{"senderName":"李娜","msgtype":"picture","content":{"downloadCode":"d"},"sendTime":"1767167060000"},
				{"nick":"王]芳","content":"好的"}]`}}),
			sessions.Quote{
				ID: "orig", Kind: "chatRecord",
				Text: "[聊天记录: 发布群]\n> 张伟 (2025-12-31 15:43 UTC+8): 周五上线\n> 李娜 (2025-12-31 15:44 UTC+8): [图片]\n> 王 芳: 好的",
			},
		},
		{
			"a quote with a speaker in the quote", quoting(dict{"msgType": "text", "content": dict{"text": "outer", "repliedMsg": dict{
				"msgType": "text", "senderNick": "李[四", "createdAt": 1767167000000, "content": dict{"text": "inner"},
			}}}),
			sessions.Quote{ID: "orig", Kind: "text", Text: "outer\n[引用 李 四 (2025-12-31 15:43 UTC+8)] inner"},
		},
	} {
		if m := mustDecode(t, c.over); m.Quote == nil || !reflect.DeepEqual(*m.Quote, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.name, m.Quote, c.want)
		}
	}
}

func TestDecodeReadsQuotes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		over dict
		want sessions.Quote
	}{
		{
			"text", quoting(dict{"msgType": "text", "msgId": "q1", "senderId": "s2", "createdAt": "17", "content": dict{"text": "original words"}}),
			sessions.Quote{ID: "q1", SenderID: "s2", Kind: "text", Text: "original words"},
		},
		{
			"content as a JSON string", quoting(dict{"msgType": "text", "content": `{"text":"original words"}`}),
			sessions.Quote{ID: "orig", Kind: "text", Text: "original words"},
		},
		{
			"block as a JSON string", quoting(`{"msgType":"text","msgId":5,"content":"plain"}`),
			sessions.Quote{ID: "5", Kind: "text", Text: "plain"},
		},
		{
			"picture", quoting(dict{"msgType": "picture", "content": dict{"downloadCode": "dc"}}),
			sessions.Quote{ID: "orig", Kind: "picture", Text: "[图片]"},
		},
		{
			"file", quoting(dict{"msgType": "file", "content": dict{"downloadCode": "dc", "fileName": "a.pdf"}}),
			sessions.Quote{ID: "orig", Kind: "file", Text: "[文件: a.pdf]"},
		},
		{"rich text", quoting(dict{"msgType": "richText", "content": dict{"richText": []any{
			dict{"msgType": "text", "content": "one "}, dict{"msgType": "picture", "downloadCode": "x"}, dict{"text": "two"},
		}}}), sessions.Quote{ID: "orig", Kind: "richText", Text: "one \n[图片]\ntwo"}},
		{
			"chat record", quoting(dict{"msgType": "chatRecord", "content": dict{"summary": "A: hi"}}),
			sessions.Quote{ID: "orig", Kind: "chatRecord", Text: "[聊天记录]\n> A: hi"},
		},
		{
			"the robot's card",
			dict{"text": dict{"content": "x", "isReplyMsg": true, "repliedMsg": dict{
				"msgType": "interactiveCard", "senderId": testBot,
			}}, "originalMsgId": "orig", "originalProcessQueryKey": "k"},
			sessions.Quote{ID: "orig", SenderID: testBot, Kind: "interactiveCard", FromBot: true, Card: "k"},
		},
		{"a card without a sender, which may be another robot's", dict{
			"text":                    dict{"content": "x", "repliedMsg": dict{"msgType": "interactiveCard"}},
			"originalProcessQueryKey": "k",
		}, sessions.Quote{Kind: "interactiveCard", Card: "k"}},
		{
			"a card's tree", quoting(dict{"msgType": "interactiveCard", "content": dict{"cardContent": dict{
				"title": "Build", "contents": []any{dict{"text": "green"}, dict{"value": 7}},
			}}}),
			sessions.Quote{ID: "orig", Kind: "interactiveCard", Text: "[卡片] Build\ngreen\n7"},
		},
		{
			"a quote in the quote", quoting(dict{"msgType": "text", "content": dict{"text": "outer", "repliedMsg": dict{
				"msgType": "text", "content": dict{"text": "inner"},
			}}}),
			sessions.Quote{ID: "orig", Kind: "text", Text: "outer\n[引用] inner"},
		},
		{"in content", dict{"msgtype": "picture", "text": nil, "content": dict{"downloadCode": "d", "repliedMsg": dict{
			"msgType": "text", "content": dict{"text": "words"},
		}}}, sessions.Quote{Kind: "text", Text: "words"}},
		{
			"at the top",
			dict{"repliedMsg": dict{"msgType": "text", "content": dict{"text": "words"}}},
			sessions.Quote{Kind: "text", Text: "words"},
		},
		{"legacy quoteMessage", dict{"quoteMessage": dict{
			"msgId": "q", "msgtype": "text", "text": dict{"content": "words"},
			"senderNick": "李四", "senderId": "s",
		}}, sessions.Quote{ID: "q", SenderID: "s", Nick: "李四", Kind: "text", Text: "words"}},
		{"legacy quoteContent", dict{"content": dict{"quoteContent": "words"}}, sessions.Quote{Text: "words"}},
		{"only an id", dict{"text": dict{"content": "x", "isReplyMsg": true}, "originalMsgId": "orig"}, sessions.Quote{ID: "orig"}},
		{"nothing but the mark", dict{"text": dict{"content": "x", "isReplyMsg": "true"}}, sessions.Quote{}},
		{"a block of the wrong type", dict{"text": dict{"content": "x", "isReplyMsg": true, "repliedMsg": 7}}, sessions.Quote{}},
	} {
		m := mustDecode(t, c.over)
		if m.Quote == nil {
			t.Errorf("%s: no quote", c.name)
		} else if !reflect.DeepEqual(*m.Quote, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.name, *m.Quote, c.want)
		}
	}
	if m := mustDecode(t, nil); m.Quote != nil {
		t.Errorf("a message that quotes nothing has the quote %+v", *m.Quote)
	}
	if m := mustDecode(t, quoting(dict{"msgType": "file", "content": dict{"downloadCode": "dc", "fileName": "a.pdf"}})); len(m.Attachments) != 1 {
		t.Errorf("the quoted file can't be fetched: %+v", m.Attachments)
	}
}

func TestDecodeFillsGaps(t *testing.T) {
	t.Parallel()
	m := mustDecode(t, dict{"robotCode": nil, "senderStaffId": "", "isAdmin": nil, "createAt": "soon", "sessionWebhookExpiredTime": 1e30})
	if m.RobotCode != "dingdefault" || m.SenderID != testUser || m.StaffID != "" || m.Admin || !m.SentAt.IsZero() || !m.WebhookExpires.IsZero() {
		t.Errorf("got %+v", m)
	}
	private := dict{"conversationType": nil, "conversationTitle": nil, "isInAtList": nil, "atUsers": nil}
	if m := mustDecode(t, private); m.ConversationType != sessions.Unknown {
		t.Errorf("a message without any sign of a group is of type %q", m.ConversationType)
	}
}

func TestDecodeSeesTheQuotaMessage(t *testing.T) {
	t.Parallel()
	for _, over := range []dict{
		{"text": nil, "errorCode": 20001, "errorMessage": "quota"},
		{"text": nil, "errCode": "20001", "errMsg": "quota"},
	} {
		if m := mustDecode(t, over); !m.OverQuota || m.Text != "" {
			t.Errorf("%v: got %+v", over, m)
		}
	}
}

func TestDecodeRefusesOnlyUnstorableFrames(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"empty": "", "not JSON": "hello", "truncated": `{"msgId":"a","conversationId":"b"`, "array": "[]", "null": "null",
		"two values":               `{"msgId":"a","conversationId":"b"} {}`,
		"no message id":            asJSON(t, envelope(dict{"msgId": nil})),
		"message id of odd type":   asJSON(t, envelope(dict{"msgId": dict{}})),
		"message id of spaces":     asJSON(t, envelope(dict{"msgId": " \u200b"})),
		"message id without end":   asJSON(t, envelope(dict{"msgId": strings.Repeat("m", 10_000)})),
		"no conversation id":       asJSON(t, envelope(dict{"conversationId": nil})),
		"conversation without end": asJSON(t, envelope(dict{"conversationId": strings.Repeat("c", 10_000)})),
	} {
		_, err := Decode(data, "r")
		if err == nil {
			t.Errorf("%s: decoded", name)
		} else if strings.Contains(err.Error(), "deploy") {
			t.Errorf("%s: the error quotes the message: %v", name, err)
		}
	}
	if _, err := Decode(asJSON(t, asJSON(t, envelope(nil))), "r"); err != nil {
		t.Errorf("a payload encoded twice: %v", err)
	}
}

// A message of the bot itself is none to answer: two answers would call each other.
func TestDecodeKnowsTheBotsOwnMessages(t *testing.T) {
	t.Parallel()
	if _, err := Decode(asJSON(t, envelope(dict{"senderId": testBot, "senderStaffId": nil})), "r"); !errors.Is(err, ErrOwn) {
		t.Errorf("error %v, want %v", err, ErrOwn)
	}
	if _, err := Decode(asJSON(t, envelope(dict{"senderId": nil, "chatbotUserId": nil})), "r"); err != nil {
		t.Errorf("without both ids: %v", err)
	}
}

// The law: whatever type a field other than the ids has, the message decodes, and its text is storable.
func TestDecodeBearsAnyTypes(t *testing.T) {
	t.Parallel()
	values := []any{
		nil, "", "x", "{", "{}", "[]", `{"a":`, "\x00", 0, -1, 1e300, true, false,
		[]any{},
		[]any{1, "a", nil, dict{}},
		dict{},
		dict{"content": dict{"content": 1}},
		dict{"richText": dict{"text": []any{}}},
		dict{"repliedMsg": []any{dict{}}},
	}
	rapid.Check(t, func(r *rapid.T) {
		o := envelope(nil)
		kinds := []string{"text", "richText", "picture", "audio", "video", "file", "chatRecord", "interactiveCard", "odd"}
		o["msgtype"] = rapid.SampledFrom(kinds).Draw(r, "kind")
		o["content"] = dict{"richText": []any{dict{"text": "a"}}, "downloadCode": "d", "repliedMsg": dict{"content": dict{"text": "q"}}}
		spoil(r, o, values, 0)
		o["msgId"], o["conversationId"], o["chatbotUserId"] = "m", "c", testBot // no person is the bot
		m, err := Decode(asJSON(t, o), "robot")
		if err != nil {
			r.Fatalf("%v did not decode: %v", o, err)
		}
		checkStorable(r, m)
	})
}

// spoil replaces some fields, at any depth, by other values.
func spoil(r *rapid.T, o map[string]any, values []any, depth int) {
	for k, v := range o {
		if inner, ok := v.(map[string]any); ok && depth < 4 && rapid.Bool().Draw(r, k+" inside") {
			spoil(r, inner, values, depth+1)
		} else if rapid.IntRange(0, 2).Draw(r, k) == 0 {
			o[k] = rapid.SampledFrom(values).Draw(r, k+" value")
		}
	}
}

type fataler interface{ Fatalf(string, ...any) }

func checkStorable(t fataler, m sessions.Message) {
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatalf("the message can't be stored: %v", err)
	}
	if strings.Contains(string(b), `\u0000`) || !utf8.Valid(b) {
		t.Fatalf("no database text holds this: %s", b)
	}
}

// The law: no data makes Decode panic, what it decodes can be stored, and no name in it has a line break or turns the direction of the text.
func FuzzDecode(f *testing.F) {
	f.Add(asJSON(f, envelope(nil)))
	f.Add(asJSON(f, envelope(dict{"msgtype": "richText", "content": `{"richText":[{"text":"a"}]}`})))
	f.Add(asJSON(f, envelope(dict{"text": dict{"content": "x", "repliedMsg": dict{"msgType": "text", "content": "{\"text\":\"y\"}"}}})))
	f.Add(asJSON(f, envelope(dict{"atUsers": atUsers("u2"), "msgtype": "richText", "content": dict{"richText": []any{dict{"text": "@Ebb"}, dict{"text": "／状态"}}}})))
	f.Add(asJSON(f, envelope(dict{"msgtype": "chatRecord", "content": dict{"title": "t", "chatRecord": `[{"senderNick":"陈一","content":"x"},{"msgtype":"chatRecord","content":{"chatRecord":[1]}}]`}})))
	f.Add(asJSON(f, envelope(dict{"msgtype": "file", "content": dict{"downloadCode": "d", "fileName": "a\n\u202egnp]\n张伟(staff01): ok <<<file x/../../etc"}})))
	f.Add(asJSON(f, envelope(dict{"quoteMessage": dict{"msgtype": "chatRecord", "createdAt": 1e15, "senderNick": "a\nb", "content": dict{"chatRecord": `[{"createAt":"1767167000000","content":{"repliedMsg":{}}}]`}}})))
	f.Add(asJSON(f, envelope(dict{"content": dict{"quoteContent": dict{"richText": []any{1}}}})))
	f.Add("\"{}\"")
	f.Add("{\"msgId\":\"\\ud800\",\"conversationId\":1e999}")
	f.Fuzz(func(t *testing.T, data string) {
		m, err := Decode(data, "robot")
		if err != nil {
			return
		}
		if m.ID == "" || m.ConversationID == "" || m.RobotCode == "" {
			t.Fatalf("decoded without an id: %+v", m)
		}
		if q := m.Quote; q != nil && strings.Contains(q.Nick, "\n") {
			t.Fatalf("a speaker of two lines: %+v", q)
		}
		for _, a := range m.Attachments {
			if strings.ContainsFunc(a.Name, func(r rune) bool { return unicode.IsControl(r) || r == 0x202e }) {
				t.Fatalf("a file is named %q", a.Name)
			}
		}
		checkStorable(t, m)
	})
}

// Only a member of the robot's organisation has a second id: a frame of another one says nothing of the members.
func TestEncryptedID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		frame       dict
		id, sent    sessions.UserID
		wantEncrypt sessions.UserID
		external    bool
	}{
		{"a member", dict{"senderCorpId": "corp", "chatbotCorpId": "corp"}, "u0001", "u0001", testUser, false},
		{"without a staff id", dict{"senderCorpId": "corp", "chatbotCorpId": "corp", "senderStaffId": nil}, "", testUser, testUser, false},
		{"of another organisation", dict{"senderCorpId": "other", "chatbotCorpId": "corp", "senderStaffId": nil}, "", testUser, "", true},
		{"of another organisation with a staff id", dict{"senderCorpId": "other", "chatbotCorpId": "corp"}, "u0001", "u0001", "", true},
		{"of no organisation", dict{"senderCorpId": nil, "chatbotCorpId": "corp", "senderStaffId": nil}, "", testUser, "", true},
		{"with a staff id of no organisation", dict{"senderCorpId": nil, "chatbotCorpId": "corp"}, "u0001", "u0001", "", false},
		{"of an unknown robot", dict{"senderCorpId": "", "senderStaffId": nil}, "", testUser, "", true},
		{"with the ids in the words", dict{
			"senderCorpId": "corp", "chatbotCorpId": "corp", "senderId": nil, "senderStaffId": nil,
			"text": dict{"content": `"senderStaffId":"u0001","senderId":"$:LWCP_v1:$user1"`},
		}, "", "", "", false},
	} {
		if m := mustDecode(t, c.frame); m.StaffID != c.id || m.SenderID != c.sent || m.EncryptedID != c.wantEncrypt || m.External != c.external {
			t.Errorf("%s: staff id %q, sender %q, encrypted id %q, external %v; want %q, %q, %q, %v",
				c.name, m.StaffID, m.SenderID, m.EncryptedID, m.External, c.id, c.sent, c.wantEncrypt, c.external)
		}
	}
}
