package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/bot/command"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// fileShelf keeps files in memory, by id.
type fileShelf struct {
	mu    sync.Mutex
	last  int64
	files map[int64]sessions.File
}

// Keep implements sendfile.Store.
func (s *fileShelf) Keep(_ context.Context, _ sessions.Lease, _ int64, f sessions.File) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.files[s.last] = f
	return s.last, nil
}

// Kept implements sendfile.Store.
func (s *fileShelf) Kept(context.Context, sessions.Key, []int64) (kept []sessions.File, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, f := range s.files {
		f.ID, f.Body = id, nil
		kept = append(kept, f)
	}
	return kept, nil
}

// Body implements outbox.Files.
func (s *fileShelf) Body(_ context.Context, _ sessions.Key, id int64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.files[id]
	if !ok {
		return nil, sessions.ErrNotFound
	}
	return f.Body, nil
}

// Delete implements outbox.Files.
func (s *fileShelf) Delete(_ context.Context, _ sessions.Key, id int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.files, id)
	return nil
}

func (s *fileShelf) clear() { s.mu.Lock(); defer s.mu.Unlock(); clear(s.files) }

func (s *fileShelf) length() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.files) }

// fileWire is a network that takes uploads. Their ids are media1, media2, ….
type fileWire struct {
	*bottest.Wire
	upload  func(try int) error // nil: each succeeds
	uploads int
}

// Upload implements chat.Uploader.
func (w *fileWire) Upload(_ context.Context, _ sessions.RobotCode, f sessions.File) (string, error) {
	w.Mu.Lock()
	w.uploads++
	n, upload := w.uploads, w.upload
	w.Mu.Unlock()
	if len(f.Body) == 0 {
		return "", errors.New("no bytes")
	}
	if upload != nil {
		if err := upload(n); err != nil {
			return "", err
		}
	}
	return fmt.Sprint("media", n), nil
}

func (w *fileWire) uploaded() int { w.Mu.Lock(); defer w.Mu.Unlock(); return w.uploads }

// messages are the tries to send, in short: a file with its id, or the first line of a text.
func (w *fileWire) messages() (all []string) {
	for _, o := range w.Sends() {
		line, _, _ := strings.Cut(o.Reply.Text, "\n")
		if f := o.Reply.Target.File; f != nil {
			line = f.Name + " " + f.Media
		}
		all = append(all, line)
	}
	return all
}

var pixel = func() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewPaletted(image.Rect(0, 0, 1, 1), color.Palette{color.White})); err != nil {
		panic(err)
	}
	return b.Bytes()
}()

// drawing has the model call a tool for a picture, and answer then.
func drawing() *bottest.Script {
	return &bottest.Script{Chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
		if last := r.Messages[len(r.Messages)-1]; last.Role == "tool" {
			return bottest.Text("Here it is."), nil
		}
		return bottest.Calls(bottest.Call("c1", "draw", "{}")), nil
	}}
}

// table is an answer with a table of 60 rows.
func table() string {
	var b strings.Builder
	b.WriteString("The list.\n\n## Costs\n\n| n | item |\n|---|---|\n")
	for i := range 60 {
		fmt.Fprintf(&b, "| %d | item%d |\n", i+1, i+1)
	}
	return b.String() + "\nThat is all."
}

func tabling() *bottest.Script {
	return &bottest.Script{Chat: func(context.Context, llm.Request) (llm.Response, error) { return bottest.Text(table()), nil }}
}

// startFiles runs a bot whose replies may have files.
func startFiles(t *testing.T, s bottest.Setup, files *fileShelf, wire *fileWire) *bottest.World {
	t.Helper()
	if wire.Wire == nil {
		wire.Wire = &bottest.Wire{}
	}
	s.Wire = wire.Wire
	more := s.Config
	s.Config = func(c *bot.Config) {
		c.Transport, c.Files = wire, files
		c.Tools = append(c.Tools, bottest.HandTool{Name: "draw", F: func(_ context.Context, in chat.ToolInput) (string, error) {
			if err := in.Send("chart.png", pixel); err != nil {
				return "not sent, " + err.Error(), nil
			}
			return "sent", nil
		}})
		if more != nil {
			more(c)
		}
	}
	return bottest.Start(t, s)
}

func newFiles() *fileShelf { return &fileShelf{files: map[int64]sessions.File{}} }

var (
	refusedUpload = &chat.SendError{Permanent: true, Err: errors.New("errcode 40005")}
	noCalls       = &chat.SendError{After: time.Hour, Aside: true, Err: errors.New("no calls left")}
)

// A table goes as a workbook behind its first rows. People get the whole table as text, once, if anything keeps the workbook from arriving.
func TestTableGoesAsTextWhereItsFileCannot(t *testing.T) {
	t.Parallel()
	fileFails := func(err error) *bottest.Wire {
		return &bottest.Wire{Deliver: func(_ context.Context, o sessions.Outgoing) (chat.Sent, error) {
			if o.Reply.Target.File != nil {
				return chat.Sent{}, err
			}
			return bottest.Arrived, nil
		}}
	}
	for name, tt := range map[string]struct {
		wire  *fileWire
		texts int // messages with the last row
	}{
		"sent":                       {&fileWire{}, 0},
		"upload refused":             {&fileWire{upload: func(int) error { return refusedUpload }}, 1},
		"no calls for the upload":    {&fileWire{upload: func(int) error { return noCalls }}, 1},
		"uploads fail for minutes":   {&fileWire{upload: func(int) error { return errors.New("503") }}, 1},
		"message refused":            {&fileWire{Wire: fileFails(&chat.SendError{Permanent: true, Err: errors.New("refused")})}, 1},
		"no calls for the message":   {&fileWire{Wire: fileFails(noCalls)}, 1},
		"answer of the message lost": {&fileWire{Wire: fileFails(&chat.SendError{Maybe: true, Err: errors.New("timeout")})}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				files := newFiles()
				w := startFiles(t, bottest.Setup{Model: tabling()}, files, tt.wire)
				w.Say("m1", "alice", "the costs")
				bottest.After(time.Hour)
				var whole []string
				for _, o := range tt.wire.Sends() {
					if o.Reply.Target.File == nil && strings.Contains(o.Reply.Text, "item60") {
						whole = append(whole, o.Reply.Text)
					}
				}
				bottest.Want(t, "texts with the whole", len(whole), tt.texts)
				for _, text := range whole {
					for i := range 60 {
						if !strings.Contains(text, fmt.Sprintf("| %d | item%d |", i+1, i+1)) {
							t.Errorf("row %d is missing", i+1)
						}
					}
				}
				first := tt.wire.Sends()[0].Reply.Text
				if !strings.Contains(first, "item10 ") || strings.Contains(first, "item11 ") || !strings.Contains(first, "That is all.") {
					t.Errorf("the answer begins with %q", first)
				}
				bottest.Want(t, "unsent", len(w.Unsent()), 0)
				bottest.Want(t, "files kept", files.length(), 0)
			})
		})
	}
}

// A turn makes no file where the month's calls permit none: the table stays whole, and the tool reads the reason.
func TestFilesWaitForNoCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		budget := func(c *bot.Config) {
			c.CallBudget = func(sessions.RobotCode) command.CallBudget {
				return command.CallBudget{Calls: 96, Quota: 100, Level: 2}
			}
		}
		wire := &fileWire{}
		w := startFiles(t, bottest.Setup{Model: tabling(), Config: budget}, newFiles(), wire)
		w.Say("m1", "alice", "the costs")
		w.Model.Mu.Lock()
		w.Model.Chat = drawing().Chat
		w.Model.Mu.Unlock()
		w.Say("m2", "alice", "a picture")
		sent := wire.Sends()
		bottest.Want(t, "messages", len(sent), 2)
		if !strings.Contains(sent[0].Reply.Text, "item60") {
			t.Errorf("the table is cut: %q", sent[0].Reply.Text)
		}
		asked := w.Model.Requests("chat")
		if last := bottest.LastWords(asked[len(asked)-1]); !strings.Contains(last, "nearly used up") {
			t.Errorf("the tool returned %q", last)
		}
		bottest.Want(t, "uploads", wire.uploaded(), 0)
	})
}

// The words in place of a file need a webhook like any text. The next message brings one if theirs has expired and the month has no calls.
func TestWordsOfAFileTakeALaterWebhook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wire := &fileWire{upload: func(try int) error {
			if try == 1 {
				return &chat.SendError{After: 3 * time.Minute, Err: errors.New("rate")}
			}
			return noCalls
		}}
		wire.Wire = &bottest.Wire{Deliver: func(_ context.Context, o sessions.Outgoing) (chat.Sent, error) {
			if o.Reply.Target.Webhook == "" {
				return chat.Sent{}, noCalls
			}
			return bottest.Arrived, nil
		}}
		w := startFiles(t, bottest.Setup{Model: tabling()}, newFiles(), wire)
		m := bottest.Said("m1", "alice", "the costs")
		m.WebhookExpires = time.Now().Add(2 * time.Minute)
		w.Post(m)
		bottest.After(5 * time.Minute)
		bottest.Want(t, "unsent without a webhook", len(w.Unsent()), 1)
		w.Model.Mu.Lock()
		w.Model.Chat = nil
		w.Model.Mu.Unlock()
		more := bottest.Said("m2", "alice", "more")
		more.Webhook, more.WebhookExpires = more.Webhook+"?later", time.Now().Add(time.Hour)
		w.Post(more)
		bottest.After(time.Minute)
		bottest.Want(t, "unsent", len(w.Unsent()), 0)
	})
}

// A process that goes on with the words of a file sends their next part. It neither sends the file nor takes its reply for sent.
func TestAnotherProcessGoesOnWithTheWordsOfAFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parts := func(stuck bool) *bottest.Wire {
			return &bottest.Wire{Deliver: func(_ context.Context, o sessions.Outgoing) (chat.Sent, error) {
				switch whole := strings.Contains(o.Reply.Text, "item60"); {
				case !whole:
					return bottest.Arrived, nil
				case o.Part == 0:
					return chat.Sent{Via: "webhook", Part: 1, More: true}, nil
				case stuck:
					return chat.Sent{Part: o.Part}, &chat.SendError{After: time.Minute, Err: errors.New("rate")}
				}
				return chat.Sent{Via: "webhook", Part: o.Part + 1}, nil
			}}
		}
		files, first := newFiles(), &fileWire{Wire: parts(true), upload: func(int) error { return refusedUpload }}
		a := startFiles(t, bottest.Setup{Name: "a", Model: tabling()}, files, first)
		a.Say("m1", "alice", "the costs")
		bottest.After(time.Second)
		a.Stop()
		second := &fileWire{Wire: parts(false)}
		b := startFiles(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf}, files, second)
		bottest.After(5 * time.Minute)
		begun, rest := first.Sends(), second.Sends()
		bottest.Want(t, "messages of the second process", len(rest), 1)
		bottest.Want(t, "its part", rest[0].Part, 1)
		bottest.Want(t, "its text", rest[0].Reply.Text, begun[1].Reply.Text)
		bottest.Want(t, "uploads of the second process", second.uploaded(), 0)
		bottest.Want(t, "unsent", len(b.Unsent()), 0)
	})
}

// DingTalk may forget an upload while its message waits. It is uploaded once more, and then words take its place.
func TestExpiredUploadIsRenewedOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		accepts string // the upload that the platform knows
		want    []string
	}{
		"renewed": {"media2", []string{"Here it is.", "chart.png media1", "chart.png media1", "chart.png media2"}},
		"refused": {"none", []string{"Here it is.", "chart.png media1", "chart.png media1", "chart.png media2", `The file "chart.png" could not be sent: DingTalk did not accept it. Please try again later.`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				wire := &fileWire{Wire: &bottest.Wire{Deliver: func(_ context.Context, o sessions.Outgoing) (chat.Sent, error) {
					switch f := o.Reply.Target.File; {
					case f == nil || f.Media == tt.accepts:
						return bottest.Arrived, nil
					case time.Since(began) < time.Minute:
						return chat.Sent{}, &chat.SendError{After: 5 * time.Minute, Err: errors.New("rate")}
					}
					return chat.Sent{}, &chat.SendError{Permanent: true, Err: errors.New("the media id has expired")}
				}}}
				files := newFiles()
				w := startFiles(t, bottest.Setup{Model: drawing()}, files, wire)
				w.Say("m1", "alice", "a picture please")
				bottest.After(time.Hour)
				bottest.Want(t, "messages", wire.messages(), tt.want)
				bottest.Want(t, "unsent", len(w.Unsent()), 0)
				bottest.Want(t, "files kept", files.length(), 0)
			})
		})
	}
}

// The storage knows the pause of an upload that failed: a look for replies that were left makes no attempt before its end.
func TestPausedUploadIsStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wire := &fileWire{upload: func(int) error { return &chat.SendError{After: 10 * time.Minute, Err: errors.New("rate")} }}
		w := startFiles(t, bottest.Setup{Model: drawing()}, newFiles(), wire)
		w.Say("m1", "alice", "a picture please")
		bottest.After(9 * time.Minute)
		bottest.Want(t, "uploads", wire.uploaded(), 1)
		unsent := w.Unsent()
		bottest.Want(t, "unsent", len(unsent), 1)
		bottest.Want(t, "its way", unsent[0].Via, "openapi")
	})
}

// A file follows the card of its answer, also while the card waits for its end.
func TestFileFollowsTheCardOfItsAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wire := &fileWire{Wire: pausedCards()}
		w := startFiles(t, bottest.Setup{Model: drawing(), Config: func(c *bot.Config) { c.Display = bottest.CardOf("picture") }}, newFiles(), wire)
		w.Say("m1", "alice", "a picture please")
		bottest.After(time.Second)
		bottest.Want(t, "files before the end of the card", slices.Contains(wire.messages(), "chart.png media1"), false)
		bottest.After(time.Minute)
		last := wire.Sends()[len(wire.Sends())-1].Reply.Target
		bottest.Want(t, "the last message is a file, and none of the card", last.File != nil && last.Card == "", true)
		bottest.Want(t, "unsent", len(w.Unsent()), 0)
	})
}

// A process that dies behind the upload has sent nothing. The next one uploads again, and people get one message.
func TestDeathBehindAnUploadRepeatsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		files, first := newFiles(), &fileWire{}
		var a *bottest.World
		first.upload = func(int) error { a.Kill(); return nil }
		a = startFiles(t, bottest.Setup{Name: "a", Model: drawing()}, files, first)
		a.Say("m1", "alice", "a picture please")
		second := &fileWire{}
		b := startFiles(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf, Model: drawing()}, files, second)
		bottest.After(time.Minute)
		bottest.Want(t, "messages of the first process", slices.DeleteFunc(first.messages(), func(m string) bool { return !strings.HasPrefix(m, "chart") }), nil)
		bottest.Want(t, "messages of the second process", slices.DeleteFunc(second.messages(), func(m string) bool { return !strings.HasPrefix(m, "chart") }), []string{"chart.png media1"})
		bottest.Want(t, "unsent", len(b.Unsent()), 0)
	})
}

// An erasure deletes the bytes of a file that waits. Nothing takes its place, and later answers go on.
func TestErasedFileIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		files := newFiles()
		wire := &fileWire{}
		wire.upload = func(try int) error {
			files.clear()
			return errors.New("503")
		}
		w := startFiles(t, bottest.Setup{Model: drawing()}, files, wire)
		w.Say("m1", "alice", "a picture please")
		bottest.After(time.Minute)
		w.Model.Mu.Lock()
		w.Model.Chat = nil
		w.Model.Mu.Unlock()
		w.Say("m2", "bob", "hello")
		bottest.After(time.Minute)
		bottest.Want(t, "messages", wire.messages(), []string{"Here it is.", "re: bob(u-bob): hello"})
		bottest.Want(t, "unsent", len(w.Unsent()), 0)
	})
}

// A stopped turn sends no file that its tools made.
func TestStoppedTurnSendsNoFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wire, files := &fileWire{}, newFiles()
		draw := drawing()
		model := &bottest.Script{Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			if r.Messages[len(r.Messages)-1].Role == "tool" {
				return bottest.Hang(ctx, r)
			}
			return draw.Chat(ctx, r)
		}}
		w := startFiles(t, bottest.Setup{Model: model}, files, wire)
		w.Say("m1", "alice", "a picture please")
		bottest.Want(t, "files of the turn", files.length(), 1)
		w.Say("m2", "alice", "/stop")
		bottest.After(time.Minute)
		bottest.Want(t, "uploads", wire.uploaded(), 0)
		bottest.Want(t, "unsent", len(w.Unsent()), 0)
	})
}
