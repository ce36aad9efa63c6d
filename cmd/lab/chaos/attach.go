package chaos

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/openai/openaitest"
	"ebb/cmd/lab/rig"
)

// attachKinds are messages with pictures and files beside the faults, with faults of their downloads.
var attachKinds = []chaosKind{
	{"send picture", 3, sendPicture},
	{"send rich text", 4, sendRichText},
	{"send file", 4, sendFile},
	{"quote file", 4, quoteFile},
	{"download", 4, spoilDownload},
}

// attachment is the picture or file of a message.
type attachment struct {
	word     string // in the file, or of the size of the picture, and of no other
	ask      string // mark of the message that asks about it
	picture  bool
	wordless bool // its message has no words with its mark
	expired  bool // DingTalk does not give it out
}

// The words of attachments. A picture has its word by its size.
var attachedWords = regexp.MustCompile(`F\d{6}`)

const (
	leastSide = 64
	widths    = 512
)

// paint draws the picture of a message.
func paint(mark string) []byte {
	n, _ := strconv.Atoi(mark[1:]) // digits
	img := image.NewPaletted(image.Rect(0, 0, leastSide+n%widths, leastSide+n/widths), color.Palette{color.RGBA{R: 0xff, A: 0xff}})
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err) // a buffer does not fail
	}
	return b.Bytes()
}

// markOf is the mark of a picture's message.
func markOf(p openaitest.Picture) string {
	return fmt.Sprintf("q%07d", p.Width-leastSide+(p.Height-leastSide)*widths)
}

func pictureWord(mark string) string { return "P" + mark[2:] }

// withPictures adds the marks of the pictures since the last answer to those of messages: a picture may come without a word.
func withPictures(r openaitest.Request, asked string) string {
	for _, p := range r.Pictures() {
		if mark := markOf(p); !strings.Contains(asked, mark) {
			asked = strings.TrimSpace(asked + " " + mark)
		}
	}
	return asked
}

// noteContent notes the pictures and files in a request by the messages that it asks.
func (m *chaosModel) noteContent(r openaitest.Request, asked string) {
	words := attachedWords.FindAllString(r.Text(), -1)
	for _, msg := range r.Messages {
		for _, p := range msg.Pictures {
			words = append(words, pictureWord(markOf(p)))
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for mark := range strings.FieldsSeq(asked) {
		if m.shown[mark] == nil {
			m.shown[mark] = map[string][]string{}
		}
		m.shown[mark][r.Key] = words
	}
}

func (m *chaosModel) contentShown() map[string]map[string][]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]map[string][]string{}
	for mark, by := range m.shown {
		out[mark] = maps.Clone(by)
	}
	return out
}

// expiredShare is one in this number of attachments, whose code has expired.
const expiredShare = 8

// expires reports whether DingTalk does not give out the attachment of a fault.
func expires(t fault) bool { return t.n%expiredShare == 0 }

// addFile stores the file of a message at DingTalk.
func addFile(w injector, t fault, name string, data []byte) (code string) {
	code = w.sim.AddFile(name, "application/octet-stream", data)
	if expires(t) {
		w.sim.DropFile(code)
	}
	return code
}

// drawPicture and drawText set the record of a message with an attachment.
func drawPicture(t fault, wordless bool) func(*remark) {
	return func(u *remark) {
		u.attached = attachment{word: pictureWord(u.mark), ask: u.mark, picture: true, wordless: wordless, expired: expires(t)}
	}
}

func drawText(t fault, wordless bool) func(*remark) {
	return func(u *remark) {
		u.attached = attachment{word: fileWord(u.mark), ask: u.mark, wordless: wordless, expired: expires(t)}
	}
}

func fileWord(mark string) string { return "F" + mark[2:] }

// nameOf begins the name of a message's file. It is no mark: the reply to a question may name the file besides.
func nameOf(mark string) string { return "N" + mark[1:] }

// addText stores a text file.
func addText(w injector, t fault, mark string) (code, name string) {
	name = nameOf(mark) + []string{" 清单.txt", " 清单.csv", " 清单.md"}[t.n%3]
	return addFile(w, t, name, fmt.Appendf(nil, "批次号,数量\n%s,%d\n", fileWord(mark), 1+t.n)), name
}

// sendPicture has a member send a picture without a word, in private.
func sendPicture(w injector, _ context.Context, t fault) error {
	who := w.talk.people[t.n%len(w.talk.people)]
	w.talk.sendAs(who, dingtalktest.DirectConversation(who.ID), drawPicture(t, true), func(mark string) dingtalktest.Message {
		return dingtalktest.Picture(addFile(w, t, "", paint(mark)))
	})
	return nil
}

func sendRichText(w injector, _ context.Context, t fault) error {
	who := w.talk.people[t.n%len(w.talk.people)]
	w.talk.sendAs(who, w.talk.pickPlace(who, t.n), drawPicture(t, false), func(mark string) dingtalktest.Message {
		return dingtalktest.RichText(dingtalktest.RichPart{Text: mark + " 请看这张图"}, dingtalktest.RichPart{DownloadCode: addFile(w, t, "", paint(mark))})
	})
	return nil
}

// sendFile has a member send a file in private, and ask about it. The question may come before the answer to the file, or behind it.
func sendFile(w injector, ctx context.Context, t fault) error {
	who := w.talk.people[t.n%len(w.talk.people)]
	private := dingtalktest.DirectConversation(who.ID)
	file := w.talk.sendAs(who, private, drawText(t, true), func(mark string) dingtalktest.Message { return dingtalktest.File(addText(w, t, mark)) })
	w.erasures.runScript(ctx, func(ctx context.Context) error {
		if t.n%2 == 0 {
			w.awaitAnswer(ctx, private, nameOf(file))
		}
		if err := w.awaitStored(ctx, file); err != nil {
			return err
		}
		w.talk.sayAs(who, private, func(u *remark) string {
			w.talk.said[file].attached.ask = u.mark
			return u.mark + " 这份清单里的批次号是多少"
		}, nil)
		return nil
	}, func(err error) { w.addBroken("send file: %v", err) })
	return nil
}

// quoteFile has a member of a group ask about a file that another one sent: the bot gets such a file by the quote alone.
func quoteFile(w injector, _ context.Context, t fault) error {
	who := w.talk.people[t.n%len(w.talk.people)]
	w.talk.sendAs(who, w.talk.pickGroup(t.n), drawText(t, false), func(mark string) dingtalktest.Message {
		code, name := addText(w, t, mark)
		return dingtalktest.Message{Text: mark + " 这里的批次号是多少", Quote: dingtalktest.QuoteMedia("file", "file-of-"+mark, code, name)}
	})
	return nil
}

var badDownloads = []string{"500", "502", "503", "504", "html", "truncated", "reset-before", "qps", "slow", "hang"}

// spoilDownload spoils the address of a file, or the file.
func spoilDownload(w injector, _ context.Context, t fault) error {
	w.sim.AddFault(dingtalktest.Fault{
		Route: []string{dingtalktest.RouteDownload, dingtalktest.RouteFile}[t.n%2], Action: dingtalktest.Do(badDownloads[t.n/2%len(badDownloads)]), Count: 1 + t.n%4,
	})
	return nil
}

// unreadable finds the sentence of an answer that an attachment could not be read.
func (a attachment) unreadable(mark, text string) bool {
	name := "这张图片"
	if !a.picture {
		name = `《` + nameOf(mark) + `[^》]*》`
	}
	return regexp.MustCompile(name + `(打不开|没能取到)：|附件没能及时取到`).MatchString(text)
}

// checkAttached: a picture or file is in the last request with the question about it, or the reply says that it could not be read. That sentence
// has a cause. An expired one is never shown. A model that failed is a case of checkTurns.
func (e *evidence) checkAttached(f *findings) {
	turns := map[string]loggedTurn{}
	for _, t := range turnsOf(e.log) {
		for _, mark := range t.asked {
			turns[mark] = t
		}
	}
	for _, mark := range slices.Sorted(maps.Keys(e.said)) {
		a := e.said[mark].attached
		asked, answered := turns[a.ask]
		own, taken := turns[mark]
		if a.word == "" || !answered || !taken || isWiped(asked.text+own.text) {
			continue // other checks find messages that no turn took
		}
		shown := e.isShown(a, asked)
		replies := e.repliesTo(own) + e.repliesTo(asked)
		named := a.unreadable(mark, replies)
		switch {
		case a.expired && shown:
			f.addBroken("the attachment of message %s has expired, and the model got it", mark)
		case !shown && !named && strings.Contains(asked.text, modelWords) && !isWiped(replies):
			f.addBroken("the attachment %s of message %s was not in the request of %s, and no reply says so: %q", a.word, mark, a.ask, shorten(replies))
		case named && !a.expired && !e.mayFailToDownload(e.said[mark]):
			f.addBroken("the attachment of message %s was named as unreadable without a cause: %q", mark, shorten(replies))
		}
		if shown {
			f.shown++
		}
		if named {
			f.unread++
		}
	}
}

// isShown reports whether the request of the process that answered had an attachment. A process that lost the session meanwhile may ask
// without it, and stores nothing. Any process counts where the log of the one that answered broke off.
func (e *evidence) isShown(a attachment, t loggedTurn) bool {
	by := e.content[a.ask]
	for _, line := range e.turns {
		if line.msgID == t.asked[0] && line.session == string(t.key) {
			return slices.Contains(by[line.process], a.word)
		}
	}
	for _, words := range by {
		if slices.Contains(words, a.word) {
			return true
		}
	}
	return false
}

// repliesTo joins the replies of a turn. Notes about attachments stand in them, and not in the log.
func (e *evidence) repliesTo(t loggedTurn) string {
	var b strings.Builder
	for _, l := range e.letters {
		if l.Key == t.key && (withoutNote(l.Text) == withoutNote(t.text) || isWiped(l.Text)) {
			b.WriteString(l.Text + "\n")
		}
	}
	return b.String()
}

// mayFailToDownload reports whether a download met trouble, from a message on to its answer.
func (e *evidence) mayFailToDownload(u remark) bool {
	life := rig.Interval{From: u.pushed, To: endOfTime}
	if !u.answeredAt.IsZero() {
		life.To = u.answeredAt
	}
	return slices.ContainsFunc(e.spoiled, life.Contains) || countOverlaps(e.months, rig.Interval{From: life.From.Add(-apartFor), To: life.To}) > 0 ||
		countOverlaps(e.away, life)+countOverlaps(e.rough, life) > 0 || e.anyStood(life.From, life.To)
}
