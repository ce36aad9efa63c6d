package answer

import (
	"context"
	"errors"
	"strings"
	"testing"

	"ebb/bot/turn/choice"
	"ebb/sessions"
)

// attachments is a question about one message of a kind with attachments.
func attachments(kind, words string, media ...sessions.Media) question {
	asked := []sessions.Event{{ID: 7, Role: sessions.RoleUser, Message: &sessions.Message{Kind: kind, Attachments: []sessions.Attachment{{Kind: kind}}}, Media: media}}
	return question{
		made:  choice.Choice{Asked: asked, Lang: "zh"},
		media: attached{of: map[int64][]sessions.Media{7: media}, words: words},
	}
}

// A file without a word is named with its pages, and an unreadable one with the reason. Neither needs a model. Others do.
func TestBareFilesNeedNoModel(t *testing.T) {
	t.Parallel()
	report := sessions.Media{Name: "报告.docx", Kind: "docx", Pages: 12}
	locked := sessions.Media{Name: "锁.pdf", Fault: "encrypted"}
	a, bare := bareAnswer(attachments("file", "", report))
	want(t, "a file alone is bare", bare, true)
	if !strings.Contains(a.Text, "报告.docx") || !strings.Contains(a.Text, "12") {
		t.Errorf("%q names neither the file nor its pages", a.Text)
	}
	a, bare = bareAnswer(attachments("file", "", locked))
	want(t, "an unreadable file alone is bare", bare, true)
	if !strings.Contains(a.Text, "锁.pdf") || !strings.Contains(a.Text, "密码") {
		t.Errorf("%q does not say why 锁.pdf could not be read", a.Text)
	}
	want(t, "events of the answer", len(a.Result.Events), 1)
	_, bare = bareAnswer(attachments("file", "总结一下", report))
	want(t, "a file with a question is bare", bare, false)
	_, bare = bareAnswer(attachments("picture", "", sessions.Media{Kind: sessions.MediaPicture}))
	want(t, "a picture is bare", bare, false)
}

// A model that sees no pictures says nothing about pictures alone: the members read one honest sentence in place of its guess.
func TestBlindModelGuessesNothing(t *testing.T) {
	t.Parallel()
	q := attachments("picture", "", sessions.Media{Kind: sessions.MediaPicture, Picture: &sessions.Picture{}})
	q.media.blind = true
	guess := Answer{Text: "一只猫", Result: sessions.TurnResult{Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "一只猫", Tokens: 3}}}}
	a := withNotes(q, guess)
	if strings.Contains(a.Text, "猫") || strings.Contains(a.Result.Events[0].Content, "猫") || a.Text == "" {
		t.Errorf("the members read %q, the log has %q", a.Text, a.Result.Events[0].Content)
	}
	q.media.words = "这是什么，另外三加四等于几？"
	guess.Result.Events = []sessions.Event{{Role: sessions.RoleAssistant, Content: "七"}}
	guess.Text = "七"
	a = withNotes(q, guess)
	want(t, "an answer to words besides", a.Text, "七")
	if a.Notes == "" {
		t.Error("the answer has no note on the picture")
	}
}

// slowMedia waits for the end of the time that a download has.
type slowMedia struct{ Media }

func (slowMedia) Fetch(ctx context.Context, _ sessions.Lease, _ []sessions.Event) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// A turn that ends while its attachments are downloaded ends with that, and takes it for no late platform.
func TestDownloadEndsWithItsTurn(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	end()
	_, err := mediaReader{media: slowMedia{}}.open(ctx, attachments("file", ""))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
