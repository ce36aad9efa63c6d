package dingtalk

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"ebb/bot/dingtalk/card"
	"ebb/bot/dingtalk/markdown"
	"ebb/bot/dingtalk/request"
	"ebb/bot/dingtalk/value"
	"ebb/sessions"
)

// A reply of several parts says which part is which; the only part does not.
func TestPartsAreNumbered(t *testing.T) {
	t.Parallel()
	parts := compose(sessions.Reply{Text: strings.Repeat("一句话。\n\n", 2000)})
	for i, m := range parts {
		mark := fmt.Sprintf("(%d/%d)\n\n", i+1, len(parts))
		if len(parts) < 2 || !strings.HasPrefix(m.withMentions(), mark) || !strings.HasPrefix(m.withNames(), mark) {
			t.Errorf("part %d of %d begins with %q", i+1, len(parts), value.Clip(m.withMentions(), 20))
		}
	}
	if text := compose(sessions.Reply{Text: "short"})[0].withMentions(); text != "short" {
		t.Errorf("the only part is %q", text)
	}
}

// Replies that waited together say whose each is; in a private chat there is one person.
func TestJoinedRepliesSayWhoseTheyAre(t *testing.T) {
	t.Parallel()
	o := sessions.Outgoing{Reply: sessions.Reply{Text: "one\n\n---\n\ntwo", Target: sessions.Target{ConversationType: sessions.Group}}}
	for i, who := range []sessions.Mention{{StaffID: "u1", Nick: "张三 **x**"}, {StaffID: "u2"}} {
		o.Joined = append(o.Joined, sessions.Reply{Text: []string{"one", "two"}[i], Target: sessions.Target{Mentions: []sessions.Mention{who}}})
		o.Reply.Target.Mentions = append(o.Reply.Target.Mentions, who)
	}
	if got := compose(withAskers(o))[0].withMentions(); got != "@u1 @u2 \n\n**张三 x**\n\none\n\n---\n\n**u2**\n\ntwo" {
		t.Errorf("the group reads %q", got)
	}
	o.Reply.Target.ConversationType = sessions.Private
	if got := compose(withAskers(o))[0].withMentions(); got != "one\n\n---\n\ntwo" {
		t.Errorf("the person reads %q", got)
	}
}

// escapedLen is what the encoder writes, or the limits mean nothing.
func TestEscapedLenIsTheEncodersLength(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.Just("\x00\x1f\x7f\"\\\n\r\t\b\f\u2028<>&\xff中😀")).Draw(r, "s")
		b, err := request.Encode(s)
		if err != nil {
			r.Fatal(err)
		}
		n := 0
		for rest := s; rest != ""; {
			c, size := utf8.DecodeRuneInString(rest)
			n += escapedLen(c, size)
			rest = rest[size:]
		}
		if len(b)-2 != n {
			r.Fatalf("%q takes %d bytes, not %d", s, len(b)-2, n)
		}
	})
}

// The worst reply stays within DingTalk's bounds, whichever way it goes.
func TestEveryRequestIsWithinDingTalksBounds(t *testing.T) {
	t.Parallel()
	var people []sessions.Mention
	for i := range 80 {
		id := sessions.UserID(strings.Repeat("9", 60) + string(rune('a'+i%26)) + string(rune('a'+i/26)))
		people = append(people, sessions.Mention{StaffID: id, Nick: strings.Repeat("名", 30)}, sessions.Mention{Nick: strings.Repeat("客", 30)})
	}
	for name, text := range map[string]string{
		"quotes": strings.Repeat(`"`, 40_000), "controls": strings.Repeat("\x01", 20_000), "Chinese": strings.Repeat("长文", 20_000),
	} {
		parts := compose(sessions.Reply{Text: text, Target: sessions.Target{ConversationType: sessions.Group, Mentions: people}})
		for i, m := range parts {
			hook, _ := request.Encode(webhookBody{MsgType: "markdown", Markdown: markdownBody{m.title, m.withMentions()}, At: &atBody{UserIDs: m.ids}, MsgUUID: strings.Repeat("u", 64)})
			param, _ := request.Encode(markdownBody{m.title, m.withNames()})
			if len(hook) > 15_000 || len(param) > 15_000 {
				t.Errorf("%s, part %d: %d bytes by webhook, %d by the open API", name, i, len(hook), len(param))
			}
		}
		if len(parts[0].ids) == 0 || len(parts[0].ids) > maxMentions {
			t.Errorf("%s: %d people are mentioned", name, len(parts[0].ids))
		}
	}
}

func TestComposeMentionsOnlyTheAskers(t *testing.T) {
	t.Parallel()
	to := sessions.Target{ConversationType: sessions.Group, Mentions: []sessions.Mention{
		{StaffID: "u1", Nick: "张三"}, {StaffID: "u1", Nick: "张三"}, {Nick: "[客](http://x) @all"}, {StaffID: "all", Nick: "Eve"}, {StaffID: "u2"},
	}}
	m := compose(sessions.Reply{Target: to, Text: "完成 @all @ALL，@所有人 hello@all.example"})[0]
	text := m.withMentions()
	if want := []string{"u1", "u2"}; strings.Join(m.ids, " ") != strings.Join(want, " ") {
		t.Errorf("mentions %q, want %q", m.ids, want)
	}
	for _, bad := range []string{"@all", "@ALL", "@所有人", "](", "@张三"} {
		if strings.Contains(text, bad) || strings.Contains(m.withNames(), bad) {
			t.Errorf("%q is in %q", bad, text)
		}
	}
	for _, good := range []string{"@u1 ", "@u2 ", "客http://x", "Eve", "完成"} {
		if !strings.Contains(text, good) {
			t.Errorf("%q is not in %q", good, text)
		}
	}
	if naming := m.withNames(); !strings.HasPrefix(naming, "张三、") || strings.Contains(naming, "u1") {
		t.Errorf("by the open API it is %q", naming)
	}
	to.ConversationType = sessions.Private
	if m := compose(sessions.Reply{Target: to, Text: "hi"})[0]; m.withMentions() != "hi" || len(m.ids) > 0 {
		t.Errorf("a private reply mentions a member: %+v", m)
	}
}

func TestTitleIsTheFirstWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"## **Status** of `x`\n\nok":  "Status of x",
		"\n\n- item one":              "item one",
		"```go\nfunc main":            "func main",
		"---\n\n":                     "回复",
		strings.Repeat("长", 50):       strings.Repeat("长", 20),
		"> [docs](https://x.example)": "docshttps://x.example",
	} {
		if got := titleOf(text); got != value.Clip(want, 20) {
			t.Errorf("%q has the title %q, want %q", value.Clip(text, 20), got, want)
		}
	}
}

func TestPartsKeepTheirIndentation(t *testing.T) {
	t.Parallel()
	item := "    - a nested item of a list\n"
	parts := compose(sessions.Reply{Text: "- list\n" + strings.Repeat(item, 1000) + strings.Repeat("\n", 30_000) + "end"})
	if len(parts) < 3 || parts[len(parts)-1].text != "end" {
		t.Fatalf("%d parts, the last is %q", len(parts), parts[len(parts)-1].text)
	}
	for i, p := range parts[1 : len(parts)-1] {
		if !strings.HasPrefix(p.text, item) {
			t.Errorf("part %d begins with %q", i+1, value.Clip(p.text, 30))
		}
	}
}

// Every way to people makes links of pictures: replies, joined replies and the beginnings of cards.
func TestPicturesOfOtherHostsAreLinks(t *testing.T) {
	t.Parallel()
	const evil = "![s](https://evil.example/p?q=FACT)"
	pictures := markdown.PicturesOf([]string{"img.example.com"})
	one := sessions.Reply{Text: "图：" + evil + " ![t](https://img.example.com/a.png) <script>x</script>"}
	for name, o := range map[string]sessions.Outgoing{
		"one":    {Reply: one},
		"card":   {Reply: sessions.Reply{Text: one.Text, Target: sessions.Target{Card: "track"}}},
		"joined": {Reply: sessions.Reply{Target: sessions.Target{ConversationType: sessions.Group}}, Joined: []sessions.Reply{one, one}},
	} {
		parts := partsOf(pictures, o)
		for _, text := range []string{parts[0].withMentions(), parts[0].withNames(), parts[0].onCard()} {
			if strings.Contains(text, evil) || strings.Contains(text, "<script") || !strings.Contains(text, "[s（evil.example）](https://evil.example/p?q=FACT)") ||
				!strings.Contains(text, "![t](https://img.example.com/a.png)") {
				t.Errorf("%s: people get %q", name, text)
			}
		}
	}
}

// A long answer fills its card, and the rest goes in as few messages as an answer in Markdown would take.
func TestRestOfACardTakesFewMessages(t *testing.T) {
	t.Parallel()
	code := "```go\n"
	for i := range 420 {
		code += fmt.Sprintf("\tvalues[%d] = compute(%d, options)\n", i, i)
	}
	rows := "| 姓名 | 说明 |\n| --- | --- |\n"
	for i := range 900 {
		rows += fmt.Sprintf("| 会议%d | 说明文字 |\n", i)
	}
	for name, text := range map[string]string{
		"code": code + "```\n", "prose": strings.Repeat("这是一段说明，讲的是发布流程。\n\n", 900), "a table": rows, "one line": strings.Repeat("字", 20_000),
		"short": "好的", "a card": strings.Repeat("字", card.Limit),
	} {
		onCard, plain := compose(sessions.Reply{Text: text, Target: sessions.Target{Card: "track"}}), compose(sessions.Reply{Text: text})
		if len(onCard) > 1+len(plain) || len(plain) == 1 && len(onCard) > 2 {
			t.Errorf("%s: a card and %d messages, in Markdown %d", name, len(onCard)-1, len(plain))
		}
		if shown := card.Split(text, card.Limit)[0]; onCard[0].text != strings.TrimRightFunc(shown, unicode.IsSpace) {
			t.Errorf("%s: the card ends with another text than it was streamed with", name)
		}
		for i, m := range onCard {
			if i > 0 && len(m.text) > maxPart || i == 0 && utf8.RuneCountInString(m.text) > card.Limit {
				t.Errorf("%s: part %d has %d bytes", name, i, len(m.text))
			}
		}
	}
	if n := len(compose(sessions.Reply{Text: code + "```\n", Target: sessions.Target{Card: "track"}})); n > 3 {
		t.Errorf("420 lines of code take a card and %d messages, want at most 2", n-1)
	}
}
