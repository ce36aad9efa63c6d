package dingtalk

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"ebb/sessions"
)

// checkSplit states the law of split: nothing is lost, nothing is too long, no character is cut.
func checkSplit(t fataler, text string, limit int) []piece {
	pieces := split(text, limit)
	var all strings.Builder
	for i, p := range pieces {
		all.WriteString(p.body)
		if n := jsonLen(p.text()); n > limit {
			t.Fatalf("piece %d of %q has %d bytes, more than %d", i, clip(text, 100), n, limit)
		}
		if utf8.ValidString(text) && !utf8.ValidString(p.text()) {
			t.Fatalf("piece %d is cut inside a character: %q", i, p.body)
		}
		if p.body == "" {
			t.Fatalf("piece %d is empty", i)
		}
	}
	if all.String() != text {
		t.Fatalf("the pieces are not the text: %q", all.String())
	}
	return pieces
}

func TestSplitKeepsEverything(t *testing.T) {
	t.Parallel()
	part := rapid.SampledFrom([]string{
		"\n", "\n\n", "```go\n", "```\n", "~~~\n", "   ```\n", "    ```\n", "words and more words", strings.Repeat("长", 400),
		strings.Repeat("x", 900), "\"\\\t", "😀", "# title\n", "```" + strings.Repeat("i", 80) + "\n", "\x00\x01", "\u2028",
		strings.Repeat("`", 40) + "\n", "line\n", " ", "\xff",
	})
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(part, 0, 60).Draw(r, "parts"), "")
		checkSplit(r, text, rapid.IntRange(1000, 3000).Draw(r, "limit"))
	})
}

func FuzzSplit(f *testing.F) {
	f.Add("```go\nfunc main() {}\n```\n\nwords", 1000)
	f.Add(strings.Repeat("中文 words\n", 300), 1200)
	f.Add(strings.Repeat("~", 5000), 1000)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		checkSplit(t, text, 1000+(limit&0xffff))
	})
}

// Each piece on its own must be sound Markdown: code blocks are closed in it, and go on in the next with their language.
func TestSplitClosesAndReopensCodeBlocks(t *testing.T) {
	t.Parallel()
	code := "intro\n\n````python title\n" + strings.Repeat("print('```')\n", 300) + "````\n\nafter"
	pieces := checkSplit(t, code, 1000)
	if len(pieces) < 4 {
		t.Fatalf("%d pieces", len(pieces))
	}
	for i, p := range pieces {
		f := fence{}
		for line := range strings.Lines(p.text()) {
			f = f.after(line)
		}
		if f.mark != "" {
			t.Errorf("piece %d leaves a code block open: %q", i, p.text())
		}
		if i > 0 && i < len(pieces)-1 && !strings.HasPrefix(p.text(), "````python title\nprint") {
			t.Errorf("piece %d does not go on with the code block: %q", i, clip(p.text(), 60))
		}
	}
}

func TestSplitPrefersParagraphs(t *testing.T) {
	t.Parallel()
	paragraph := strings.Repeat("A sentence of a paragraph.\n", 14)
	for i, p := range checkSplit(t, strings.Repeat(paragraph+"\n", 9), 1000) {
		if !strings.HasSuffix(p.body, "\n\n") {
			t.Errorf("piece %d does not end with a paragraph: %q", i, p.body[len(p.body)-30:])
		}
	}
	for i, p := range checkSplit(t, strings.Repeat("An item of a long list.\n", 200), 1000) {
		if !strings.HasSuffix(p.body, "list.\n") {
			t.Errorf("piece %d does not end with a line: %q", i, p.body[len(p.body)-30:])
		}
	}
	pieces := checkSplit(t, strings.Repeat("words ", 1000), 1000)
	for i, p := range pieces {
		if !strings.HasSuffix(p.body, " ") {
			t.Errorf("piece %d ends within a word", i)
		}
	}
	if len(pieces) > 8 {
		t.Errorf("6,000 bytes take %d pieces of 1,000", len(pieces))
	}
}

// A part never ends with a heading whose text begins the next one.
func TestSplitKeepsHeadingsWithTheirText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var text strings.Builder
		for i := range rapid.IntRange(3, 60).Draw(r, "sections") {
			fmt.Fprintf(&text, "%s 第 %d 节%s%s\n\n", strings.Repeat("#", 1+i%6), i, rapid.SampledFrom([]string{"\n", "\n\n"}).Draw(r, "gap"),
				strings.Repeat(rapid.SampledFrom([]string{"一句话。", "a line\n", "words "}).Draw(r, "words"), rapid.IntRange(1, 120).Draw(r, "length")))
		}
		pieces := checkSplit(r, text.String(), rapid.IntRange(1000, 3000).Draw(r, "limit"))
		for i, p := range pieces[:len(pieces)-1] {
			lines := strings.Split(strings.TrimSpace(p.body), "\n")
			if last := lines[len(lines)-1]; strings.HasPrefix(last, "#") && strings.HasSuffix(p.body, "\n") {
				r.Fatalf("piece %d ends with the heading %q", i, last)
			}
		}
	})
}

// A reply of several parts says which part is which; the only part does not.
func TestPartsAreNumbered(t *testing.T) {
	t.Parallel()
	parts := compose(sessions.Reply{Text: strings.Repeat("一句话。\n\n", 2000)})
	for i, m := range parts {
		mark := fmt.Sprintf("(%d/%d)\n\n", i+1, len(parts))
		if len(parts) < 2 || !strings.HasPrefix(m.mentioning(), mark) || !strings.HasPrefix(m.naming(), mark) {
			t.Errorf("part %d of %d begins with %q", i+1, len(parts), clip(m.mentioning(), 20))
		}
	}
	if text := compose(sessions.Reply{Text: "short"})[0].mentioning(); text != "short" {
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
	if got := compose(named(o))[0].mentioning(); got != "@u1 @u2 \n\n**张三 x**\n\none\n\n---\n\n**u2**\n\ntwo" {
		t.Errorf("the group reads %q", got)
	}
	o.Reply.Target.ConversationType = sessions.Private
	if got := compose(named(o))[0].mentioning(); got != "one\n\n---\n\ntwo" {
		t.Errorf("the person reads %q", got)
	}
}

// jsonLen is what the encoder writes, or the limits mean nothing.
func TestJSONLenIsTheEncodersLength(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.Just("\x00\x1f\x7f\"\\\n\r\t\b\f\u2028<>&\xff中😀")).Draw(r, "s")
		b, err := encode(s)
		if err != nil {
			r.Fatal(err)
		}
		if n := len(b) - 2; n != jsonLen(s) {
			r.Fatalf("%q takes %d bytes, not %d", s, n, jsonLen(s))
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
			hook, _ := encode(webhookBody{MsgType: "markdown", Markdown: markdownBody{m.title, m.mentioning()}, At: &atBody{UserIDs: m.ids}, MsgUUID: strings.Repeat("u", 64)})
			param, _ := encode(markdownBody{m.title, m.naming()})
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
	text := m.mentioning()
	if want := []string{"u1", "u2"}; strings.Join(m.ids, " ") != strings.Join(want, " ") {
		t.Errorf("mentions %q, want %q", m.ids, want)
	}
	for _, bad := range []string{"@all", "@ALL", "@所有人", "](", "@张三"} {
		if strings.Contains(text, bad) || strings.Contains(m.naming(), bad) {
			t.Errorf("%q is in %q", bad, text)
		}
	}
	for _, good := range []string{"@u1 ", "@u2 ", "客http://x", "Eve", "完成"} {
		if !strings.Contains(text, good) {
			t.Errorf("%q is not in %q", good, text)
		}
	}
	if naming := m.naming(); !strings.HasPrefix(naming, "张三、") || strings.Contains(naming, "u1") {
		t.Errorf("by the open API it is %q", naming)
	}
	to.ConversationType = sessions.Private
	if m := compose(sessions.Reply{Target: to, Text: "hi"})[0]; m.mentioning() != "hi" || len(m.ids) > 0 {
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
		if got := titleOf(text); got != clip(want, 20) {
			t.Errorf("%q has the title %q, want %q", clip(text, 20), got, want)
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
			t.Errorf("part %d begins with %q", i+1, clip(p.text, 30))
		}
	}
}
