package chaos

import (
	"bytes"
	"image/png"
	"strings"
	"testing"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/openai/openaitest"
	"ebb/cmd/lab/rig"
)

// Each case breaks one promise about pictures and files, or has a cause that excuses it.
func TestCheckerOfAttachments(t *testing.T) {
	t.Parallel()
	const gone = "（《N0000001 清单.txt》打不开：钉钉的下载凭证已失效，请重新发送。）"
	for _, tt := range []struct {
		name  string
		spoil func(*evidence)
		want  string
	}{
		{"shown", func(*evidence) {}, ""},
		{"shown to a process that stored nothing", func(e *evidence) {
			e.content = map[string]map[string][]string{"q0000001": {"g2-1": {"F000001"}}}
		}, "the attachment F000001 of message q0000001 was not in the request of q0000001, and no reply says so"},
		{"no log of the answer", func(e *evidence) { e.turns = e.turns[1:] }, ""},
		{"not shown", func(e *evidence) { e.content = nil }, "the attachment F000001 of message q0000001 was not in the request of q0000001, and no reply says so"},
		{"not shown, and said so", func(e *evidence) {
			e.content, e.spoiled = nil, append(e.spoiled, at(50))
			e.note(gone)
		}, ""},
		{"said so without a cause", func(e *evidence) { e.content = nil; e.note(gone) }, "the attachment of message q0000001 was named as unreadable without a cause"},
		{"another file named", func(e *evidence) {
			e.content, e.spoiled = nil, append(e.spoiled, at(50))
			e.note("（《N0000002 清单.txt》打不开：钉钉的下载凭证已失效，请重新发送。）")
		}, "the attachment F000001 of message q0000001 was not in the request of q0000001, and no reply says so"},
		{"expired and named", func(e *evidence) { e.attach(func(a *attachment) { a.expired = true }); e.content = nil; e.note(gone) }, ""},
		{"expired and shown", func(e *evidence) { e.attach(func(a *attachment) { a.expired = true }) }, "the attachment of message q0000001 has expired, and the model got it"},
		{"the model failed", func(e *evidence) { e.content = nil; e.reword(2, 0, "q0000001 q0000002 周五") }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := wholeEvidence()
			e.reword(2, 0, "q0000001 q0000002 "+modelWords)
			e.attach(func(a *attachment) { *a = attachment{word: "F000001", ask: "q0000001"} })
			e.content = map[string]map[string][]string{"q0000001": {"g1-1": {"F000001"}, "g2-1": nil}}
			tt.spoil(e)
			got := e.checkAll().broken
			if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
				t.Errorf("found %q, want only %q", got, tt.want)
			}
		})
	}
}

func (e *evidence) attach(f func(*attachment)) {
	e.change("q0000001", func(r *remark) { f(&r.attached); r.answeredAt = at(200) })
}

// note adds a sentence about an attachment to a reply.
func (e *evidence) note(text string) {
	e.letters[0].Text += "\n\n" + text
	e.replies[0].Text += "\n\n" + text
}

// The mark of a picture's message is its size.
func TestPicturesHaveMarks(t *testing.T) {
	t.Parallel()
	for _, mark := range []string{"q0000001", "q0000511", "q0000512", "q0098765"} {
		img, err := png.DecodeConfig(bytes.NewReader(paint(mark)))
		if got := markOf(openaitest.Picture{Width: img.Width, Height: img.Height}); err != nil || got != mark {
			t.Errorf("the picture of %s has the mark %s: %v", mark, got, err)
		}
	}
}

// A message may be made by the simulator, which reports to the talkers under its own lock.
func TestMessagesAreMadeWithoutTheLock(t *testing.T) {
	t.Parallel()
	sim := dingtalktest.New(dingtalktest.Options{})
	defer sim.Close()
	talk := newChaosTalk(t.Context(), sim, nil, false, false)
	defer talk.close()
	made := make(chan int, 1)
	go talk.sendAs(rig.Zhang, "cid-a", func(*remark) {}, func(string) dingtalktest.Message {
		made <- talk.countUnacked()
		return dingtalktest.Text("q0000001")
	})
	select {
	case n := <-made:
		if n != 1 {
			t.Errorf("%d messages are open, want 1", n)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the message is made under the lock of the talkers")
	}
}
