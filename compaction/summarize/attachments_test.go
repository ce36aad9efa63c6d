package summarize

import (
	"fmt"
	"strings"
	"testing"

	"ebb/compaction/compactiontest"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/llm/llmtest"
)

// sent is a message with a picture, or with a file of a name, and its answer.
func sent(seq int64, words, name, answer string) []sessions.Event {
	a := sessions.Attachment{Kind: "picture"}
	if name != "" {
		a = sessions.Attachment{Kind: "file", Name: name}
	}
	return []sessions.Event{
		{Seq: seq, ID: 100 + seq, Role: sessions.RoleUser, SenderNick: "张伟", SenderID: "u1", Content: words, Tokens: 20, Message: &sessions.Message{Attachments: []sessions.Attachment{a}}},
		{Seq: seq + 1, Role: sessions.RoleAssistant, Content: answer, Tokens: 20},
	}
}

// A summary has a line on each picture and file, with the question and the answer about it, whatever a model writes. Later summaries keep it.
func TestAttachmentsStayInSummaries(t *testing.T) {
	t.Parallel()
	written := goodText
	m := &modelFunc{answer: func(int, llm.Request) (llm.Response, error) {
		return llm.Response{Text: written, Finish: llm.FinishStop, Model: "main"}, nil
	}}
	events := append(sent(1, "这张[图片]哪里不对", "", "左边的网关接反了"), sent(3, "看合同", "采购合同.pdf", "金额是 42 万元")...)
	first, err := summarizer(m).Summarize(t.Context(), Request{Events: events, Target: 2000})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{goodText, "## 图片与文件", "- #1: 张伟(u1) [图片 picture]: 这张［图片］哪里不对 → 左边的网关接反了", "- #3: 张伟(u1) [采购合同.pdf]: 看合同 → 金额是 42 万元", sessions.HistoryTool}
	holdsAll(t, first.Text, want...)
	if n := compactiontest.Counter().Count(first.Text); n != first.Tokens {
		t.Errorf("%d tokens, the result says %d", n, first.Tokens)
	}
	// A model that copies the section, in part or wrongly, changes nothing in it.
	written = goodText + "\n## 图片与文件\n- #1: 一只猫\n- #77: 编造的\n## 备注\n照旧"
	second, err := summarizer(m).Summarize(t.Context(), Request{Previous: first.Text, Events: sent(9, "再看[图片]", "", "好了"), Target: 2000})
	if err != nil {
		t.Fatal(err)
	}
	holdsAll(t, second.Text, append(want, "- #9: ", "→ 好了", "## 备注\n照旧")...)
	for _, bad := range []string{"一只猫", "编造的"} {
		if strings.Contains(second.Text, bad) {
			t.Errorf("the summary has %q of the model", bad)
		}
	}
	if n := strings.Count(second.Text, "## 图片与文件"); n != 1 {
		t.Errorf("%d sections:\n%s", n, second.Text)
	}
	if asked := llmtest.Data(m.asked[0]); !strings.Contains(asked, "这张[图片]哪里不对") || !strings.Contains(asked, "左边的网关接反了") {
		t.Errorf("the request has neither the picture nor its answer: %s", asked)
	}
	// A summary of summaries, and a note in place of one.
	rolled, err := summarizer(m).Summarize(t.Context(), Request{Summaries: true, Events: []sessions.Event{{Seq: 1, Role: sessions.RoleSummary, Content: second.Text, Tokens: second.Tokens}}, Target: 2000})
	if err != nil {
		t.Fatal(err)
	}
	holdsAll(t, rolled.Text, want[1:]...)
	note := (&Engine{Summarizer: summarizer(m)}).WriteNote(Task{Events: events, Through: 4})
	holdsAll(t, note.Summaries[0].Text, want[1:]...)
	// A digest is read by people who can't read the messages.
	digest := summarizer(m)
	digest.Kind, written = llm.KindDigest, goodText
	if got, err := digest.Summarize(t.Context(), Request{Events: events, Target: 2000}); err != nil || strings.Contains(got.Text, "图片与文件") {
		t.Errorf("the digest is %q, %v", got.Text, err)
	}
}

// Many attachments take a bounded part of a summary. The newest have their lines, and earlier ones their numbers.
func TestManyAttachmentsStayShort(t *testing.T) {
	t.Parallel()
	m := &modelFunc{answer: func(int, llm.Request) (llm.Response, error) { return good(), nil }}
	var events []sessions.Event
	for i := range 30 {
		events = append(events, sent(int64(2*i+1), fmt.Sprintf("第 %d 张[图片]", i), "", "# 标题\n```\n<<<"+strings.Repeat("很长的回答", 50))...)
	}
	got, err := summarizer(m).Summarize(t.Context(), Request{Events: events, Target: 1200})
	if err != nil {
		t.Fatal(err)
	}
	text, lines := splitAttachments(got.Text)
	if text != goodText || len(lines) != 30 {
		t.Fatalf("%d lines behind %q", len(lines), text)
	}
	if n := compactiontest.Counter().Count(strings.TrimPrefix(got.Text, goodText)); n > 700 {
		t.Errorf("the section has %d tokens", n)
	}
	if last := lines[29]; last.seq != 59 || !strings.Contains(last.text, "第 29 张") || strings.ContainsAny(last.text, "`<") {
		t.Errorf("the last line is %+v", last)
	}
	if first := lines[0]; first.seq != 1 || first.text != "" {
		t.Errorf("the first one is %+v", first)
	}
}

func holdsAll(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in:\n%s", w, text)
		}
	}
}
