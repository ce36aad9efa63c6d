package frame

import (
	"reflect"
	"strings"
	"testing"

	"ebb/sessions"
)

// atUsers lists the robot and others, as in frames.
func atUsers(others ...string) []any {
	list := []any{dict{"dingtalkId": testBot}}
	for _, id := range others {
		list = append(list, dict{"dingtalkId": "$:LWCP_v1:$" + id, "staffId": id})
	}
	return list
}

func rich(parts ...string) dict {
	var list []any
	for _, p := range parts {
		list = append(list, dict{"text": p})
	}
	return dict{"msgtype": "richText", "text": nil, "content": dict{"richText": list}}
}

func words(text string) dict { return dict{"text": dict{"content": text}} }

func TestDecodeReadsWhoIsMentioned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at   any
		want []sessions.UserID
	}{
		"the robot":        {atUsers(), nil},
		"a person":         {atUsers("u2"), []sessions.UserID{"u2"}},
		"two":              {atUsers("u2", "u3", "u2"), []sessions.UserID{"u2", "u3"}},
		"a person outside": {[]any{dict{"dingtalkId": testBot}, dict{"dingtalkId": "$:LWCP_v1:$x"}}, []sessions.UserID{"$:LWCP_v1:$x"}},
		"odd types":        {[]any{7, nil, "x", dict{"staffId": 12}}, []sessions.UserID{"12"}},
	} {
		for _, over := range []dict{words(" 周五前给出来"), rich("@Ebb ", "周五前给出来"), {"msgtype": "picture", "text": nil, "content": dict{"downloadCode": "d"}}} {
			over["atUsers"] = c.at
			if got := mustDecode(t, over).Mentioned; !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	}
}

func TestDecodeReadsMentionsOfAll(t *testing.T) {
	t.Parallel()
	everyone := []sessions.UserID{sessions.Everyone}
	for name, c := range map[string]struct {
		all  any
		at   any
		want []sessions.UserID
	}{
		"alone":        {true, nil, everyone},
		"in words":     {"true", nil, everyone},
		"the robot":    {true, atUsers(), everyone},
		"and a person": {true, atUsers("u2"), []sessions.UserID{sessions.Everyone, "u2"}},
		"no":           {false, atUsers(), nil},
		"odd":          {dict{}, atUsers(), nil},
	} {
		over := words("周五前给出来")
		over["isAtAll"], over["atUsers"] = c.all, c.at
		if got := mustDecode(t, over); !reflect.DeepEqual(got.Mentioned, c.want) || got.Text != "周五前给出来" {
			t.Errorf("%s: %v, want %v", name, got.Mentioned, c.want)
		}
	}
}

func TestDecodeReadsMentionsInQuotes(t *testing.T) {
	t.Parallel()
	for name, quoted := range map[string]dict{
		"beside the words": {"msgId": "q1", "msgType": "text", "content": dict{"text": "周五前给出来"}, "atUsers": atUsers("u2", "u3")},
		"in the words":     {"msgId": "q1", "msgType": "text", "content": dict{"text": "周五前给出来", "atUsers": atUsers("u2", "u3")}},
	} {
		got := mustDecode(t, dict{"text": dict{"content": "好的", "isReplyMsg": true, "repliedMsg": quoted}, "atUsers": atUsers("u4")})
		if got.Quote == nil || !reflect.DeepEqual(got.Quote.Mentioned, []sessions.UserID{"u2", "u3"}) || !reflect.DeepEqual(got.Mentioned, []sessions.UserID{"u4"}) {
			t.Errorf("%s: %v and %+v", name, got.Mentioned, got.Quote)
		}
	}
}

func TestDecodeFindsCommandsBehindMentions(t *testing.T) {
	t.Parallel()
	for _, others := range [][]string{nil, {"u2"}} {
		for _, c := range []struct {
			over dict
			want string
		}{
			{rich("@Ebb", "/状态"), "/状态"},
			{rich("@Ebb", "/status"), "/status"},
			{rich("@Ebb ", " /状态"), "/状态"},
			{rich("@Ebb /忘记我"), "/忘记我"},
			{rich("@Ebb／状态"), "／状态"},
			{rich("@Ebb\u3000／状态"), "／状态"},
			{rich("@Ebb\u00a0/状态"), "/状态"},
			{rich("@Ebb\n/状态"), "/状态"},
			{rich(" @Ebb /状态"), "/状态"},
			{rich("@Ebb", "\n", "/状态"), "/状态"},
			{rich("@Ebb @张三 /状态"), "/状态"},
			{rich("@Ebb", "@张三", "/状态"), "/状态"},
			{words(" @Ebb /状态"), "/状态"},
			{words("@Ebb/状态"), "/状态"},
			{words("@Ebb/help"), "/help"},
			{words("＠Ebb／help"), "／help"},
			{words("\u2005@Ebb\u2005/状态"), "/状态"},
			{words("@Ebb\u200b /状态"), "/状态"},
			{words("@所有人 @Ebb /状态"), "/状态"},
			{words("@Ebb @types/node"), "@Ebb @types/node"},
			{words("＠Ebb /忘记 订单"), "/忘记 订单"},
			{words(" 请问 /状态 怎么用"), "请问 /状态 怎么用"},
			{words(" @张三 看看 /状态"), "@张三 看看 /状态"},
			{words(" @types/node 怎么装"), "@types/node 怎么装"},
		} {
			c.over["atUsers"] = atUsers(others...)
			if got := mustDecode(t, c.over).Text; got != c.want {
				t.Errorf("%v, others %v: %q, want %q", c.over, others, got, c.want)
			}
		}
	}
	over := words("@Other /状态")
	over["atUsers"] = []any{dict{"dingtalkId": "$:LWCP_v1:$other"}}
	if got := mustDecode(t, over).Text; got != "@Other /状态" {
		t.Errorf("a command for another bot: %q", got)
	}
}

// The robot's mention is no word of the question, wherever a client puts blanks around it.
func TestDecodeDropsTheRobotsMention(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		over dict
		want string
	}{
		{rich("@Ebb", " 几点开会"), "几点开会"},
		{rich(" ", "@Ebb", " 几点开会"), "几点开会"},
		{rich("\u3000", "\n", "＠Ebb ", "几点开会"), "几点开会"},
		{rich("几点开会 ", "@Ebb"), "几点开会"},
		{rich("几点开会 ", "@Ebb", " "), "几点开会"},
		{rich("几点开会", " @Ebb\u00a0", "\n", " "), "几点开会"},
		{rich(" ", "@Ebb", " "), ""},
		{rich("你问 ", "@李娜", " 几点开会"), "你问 @李娜 几点开会"},
		{words(" @Ebb "), ""},
		{words("@Ebb"), ""},
		{words("@Ebb 几点开会"), "@Ebb 几点开会"},
	} {
		c.over["atUsers"] = atUsers()
		if got := mustDecode(t, c.over).Text; got != c.want {
			t.Errorf("%v: %q, want %q", c.over, got, c.want)
		}
	}
	picture := dict{"msgtype": "richText", "text": nil, "atUsers": atUsers(), "content": dict{"richText": []any{dict{"text": " "}, dict{"text": "@Ebb"}, dict{"type": "picture", "downloadCode": "d"}, dict{"text": "这是什么"}}}}
	if got := mustDecode(t, picture); got.Text != "[图片]\n这是什么" || len(got.Attachments) != 1 {
		t.Errorf("a picture behind the mention: %q, %v", got.Text, got.Attachments)
	}
}

func TestDecodeReadsForwardedRecords(t *testing.T) {
	t.Parallel()
	record := func(title string, messages any) dict {
		return dict{"title": title, "summary": "陈一:[消息]", "chatRecord": messages}
	}
	inner := []any{dict{"senderNick": "李四", "content": "内层"}}
	for name, c := range map[string]struct {
		body dict
		want string
	}{
		"a string":    {record("群聊", `[{"senderNick":"陈一","content":"客户的时间字段查询异常"}]`), "[聊天记录: 群聊]\n> 陈一: 客户的时间字段查询异常"},
		"a nick":      {record("", []any{dict{"senderNick": "张三(u2): 同意\n李四(u3)", "content": "一"}}), "[聊天记录]\n> 张三 u2 同意 李四 u3: 一"},
		"lines":       {record("", []any{dict{"senderNick": "陈一", "content": "一\n二"}}), "[聊天记录]\n> 陈一: 一\n> 二"},
		"kinds":       {record("", []any{dict{"senderNick": "陈一", "msgtype": "picture", "content": dict{"downloadCode": "d"}}, dict{"msgtype": "file", "content": dict{"fileName": "a.pdf"}}}), "[聊天记录]\n> 陈一: [图片]\n> 某人: [文件: a.pdf]"},
		"nested":      {record("", []any{dict{"senderNick": "陈一", "msgtype": "chatRecord", "content": record("内", inner)}}), "[聊天记录]\n> 陈一: [聊天记录: 内]\n> > 李四: 内层"},
		"no messages": {dict{"summary": "陈一:[消息]"}, "[聊天记录]\n> 陈一:[消息]"},
		"odd":         {record("", []any{1, nil, "x", []any{}}), "[聊天记录]\n> 某人:\n> 某人:\n> 某人:\n> 某人:"},
	} {
		m := mustDecode(t, dict{"msgtype": "chatRecord", "text": nil, "content": c.body})
		if m.Text != c.want {
			t.Errorf("%s: %q, want %q", name, m.Text, c.want)
		}
		quoted := mustDecode(t, dict{"text": dict{"content": "看看", "isReplyMsg": true, "repliedMsg": dict{"msgType": "chatRecord", "content": c.body}}})
		if quoted.Quote == nil || quoted.Quote.Text != c.want {
			t.Errorf("%s, quoted: %+v", name, quoted.Quote)
		}
	}
	var many []any
	for range 300 {
		many = append(many, dict{"senderNick": "陈一", "content": strings.Repeat("长", 2000)})
	}
	if got := mustDecode(t, dict{"msgtype": "chatRecord", "text": nil, "content": record("", many)}).Text; len([]rune(got)) > maxRecordText+100 || !strings.Contains(got, "还有 ") {
		t.Errorf("a long record has %d characters", len([]rune(got)))
	}
}
