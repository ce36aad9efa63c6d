package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/media/document/documenttest"
	"ebb/bot/openai/openaitest"
)

var scriptColors = map[string]color.RGBA{
	"红": {0xff, 0, 0, 0xff}, "绿": {0, 0xff, 0, 0xff}, "蓝": {0, 0, 0xff, 0xff}, "白": {0xff, 0xff, 0xff, 0xff}, "黑": {0, 0, 0, 0xff},
}

// cmdPicture is: NAME COLOR WIDTH HEIGHT [jpeg]. The picture is on DingTalk's server.
func (w *world) cmdPicture(args []string) error {
	width, err := strconv.Atoi(args[2])
	height, err2 := strconv.Atoi(args[3])
	shade, known := scriptColors[args[1]]
	if err != nil || err2 != nil || !known {
		return fmt.Errorf("no picture of %v", args)
	}
	img := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{shade})
	var b bytes.Buffer
	kind := "image/png"
	if len(args) > 4 {
		kind, err = "image/jpeg", jpeg.Encode(&b, img, nil)
	} else {
		err = png.Encode(&b, img)
	}
	w.keepFile(args[0], args[0], kind, b.Bytes())
	return err
}

func (w *world) keepFile(name, fileName, kind string, data []byte) {
	fileName = strings.NewReplacer(`\n`, "\n", `\u202e`, "\u202e").Replace(fileName)
	if w.files == nil {
		w.files = map[string]sentFile{}
	}
	w.files[name] = sentFile{code: w.ding.AddFile(fileName, kind, data), name: fileName}
}

// sentFile is a file on DingTalk's server.
type sentFile struct{ code, name string }

// cmdFile is: NAME FILENAME text TEXT, or hex BYTES, or bytes FILE: a file of the scenario. The other kinds are size MB, and pages N: a DOCX of N
// pages with their numbers. Those of documentOf are pdf PAGE…, pptx SLIDE…, xlsx ROW… with "|" between cells, locked ROW…, bomb docx|pdf|png.
func (w *world) cmdFile(args []string) error {
	var data []byte
	switch kind, what := args[2], args[3]; kind {
	case "text":
		data = []byte(strings.ReplaceAll(what, `\n`, "\n"))
	case "hex":
		if _, err := fmt.Sscanf(what, "%x", &data); err != nil {
			return err
		}
	case "size":
		n, err := strconv.Atoi(what)
		if err != nil {
			return err
		}
		data = bytes.Repeat([]byte("很长的文件。"), n<<20/len("很长的文件。")+1)
	case "pages":
		n, err := strconv.Atoi(what)
		if err != nil {
			return err
		}
		data = docxOfPages(n, args[4:])
	case "bytes":
		var err error
		if data, err = os.ReadFile(filepath.Join(w.dir, what)); err != nil {
			return err
		}
	default:
		var err error
		if data, err = documentOf(kind, args[3:]); err != nil {
			return err
		}
	}
	w.keepFile(args[0], args[1], "application/octet-stream", data)
	return nil
}

// documentOf is a file of a kind, or a bomb: small, and large when it is read.
func documentOf(kind string, parts []string) ([]byte, error) {
	switch kind {
	case "pdf":
		return documenttest.PDF(parts...), nil
	case "pptx":
		return documenttest.PPTX(parts...), nil
	case "xlsx", "locked":
		rows := make([][]any, len(parts))
		for i, row := range parts {
			for cell := range strings.SplitSeq(row, "|") {
				rows[i] = append(rows[i], cell)
			}
		}
		password := ""
		if kind == "locked" {
			password = "8842"
		}
		return documenttest.XLSX(rows, password)
	case "bomb":
		switch parts[0] {
		case "docx":
			return documenttest.DOCXBomb(600 << 20), nil
		case "pdf":
			return documenttest.PDFBomb(700 << 20), nil
		case "png":
			return documenttest.HugePNG(50_000), nil
		}
	}
	return nil, fmt.Errorf("file %s?", kind)
}

// docxOfPages has a paragraph on each page. special are numbers with their own words.
func docxOfPages(n int, special []string) []byte {
	own := map[string]string{}
	for i := 0; i+1 < len(special); i += 2 {
		own[special[i]] = special[i+1]
	}
	var body strings.Builder
	for i := range n {
		if i > 0 {
			body.WriteString(`<w:p><w:r><w:br w:type="page"/></w:r></w:p>`)
		}
		text := own[strconv.Itoa(i+1)]
		if text == "" {
			text = strings.Repeat(fmt.Sprintf("本页说明设备维护的第 %d 个步骤，按顺序检查各项指标并签字。", i+1), 12)
		}
		body.WriteString("<w:p><w:r><w:t>" + text + "</w:t></w:r></w:p>")
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	part, _ := z.Create("word/document.xml") // a buffer does not fail
	_, _ = fmt.Fprintf(part, `<?xml version="1.0"?><w:document xmlns:w="w"><w:body>%s</w:body></w:document>`, body.String())
	_ = z.Close()
	return b.Bytes()
}

// cmdSend is: CONV NICK ID picture NAME, or file NAME, or video NAME, or voice NAME WORDS, or unknown KIND. "all TEXT" mentions all members.
// "rich PART…" has words, or a picture behind "+". A phone sends a picture of a group with the mention in the text, a desktop as an own part.
func (w *world) cmdSend(args []string) error {
	var m dingtalktest.Message
	code := func(name string) string { return w.files[name].code }
	switch kind, rest := args[3], args[4:]; kind {
	case "picture":
		m = dingtalktest.Picture(code(rest[0]))
	case "file":
		m = dingtalktest.File(code(rest[0]), w.files[rest[0]].name)
	case "video":
		m = dingtalktest.Video(code(rest[0]), 4*time.Second)
	case "voice":
		m = dingtalktest.Audio(code(rest[0]), 4*time.Second, rest[1])
	case "unknown":
		m = dingtalktest.Unknown()
	case "all":
		m = dingtalktest.Message{Text: rest[0], Set: map[string]any{"isAtAll": true}}
	case "rich":
		var parts []dingtalktest.RichPart
		for _, p := range rest {
			if name, ok := strings.CutPrefix(p, "+"); ok {
				parts = append(parts, dingtalktest.RichPart{DownloadCode: code(name)})
			} else {
				parts = append(parts, dingtalktest.RichPart{Text: p})
			}
		}
		m = dingtalktest.RichText(parts...)
	default:
		return fmt.Errorf("send %s?", kind)
	}
	m.Sender, m.MsgID = w.person(args[1]), args[2]
	if m.Direct = strings.HasPrefix(args[0], "@"); !m.Direct {
		m.Conversation = args[0]
	}
	w.ding.Say(m)
	return nil
}

// cmdAbout is: CONV NICK ID TEXT KIND MSGID NAME [NICK [BOT]]: a question to a bot that quotes a picture or a file of a message.
func (w *world) cmdAbout(args []string) error {
	f := w.files[args[6]]
	m := dingtalktest.Message{Sender: w.person(args[1]), MsgID: args[2], Text: args[3]}
	if m.Direct = strings.HasPrefix(args[0], "@"); !m.Direct {
		m.Conversation = args[0]
	}
	name := ""
	if args[4] == "file" {
		name = f.name
	}
	m.Quote = dingtalktest.QuoteMedia(args[4], args[5], f.code, name)
	if len(args) > 7 {
		m.Quote.SenderID = "$:LWCP_v1:$" + w.person(args[7])
	}
	if len(args) > 8 {
		m.Robots = []string{scriptRobot(args[8])}
	}
	w.ding.Say(m)
	return nil
}

// cmdDownload is: api|file ACTION N: the next N requests for an address, or for a file, fail or come late; or drop NAME: its code has expired.
func (w *world) cmdDownload(args []string) error {
	switch route := args[0]; route {
	case "drop":
		f, ok := w.files[args[1]]
		if !ok {
			return errors.New("no such file")
		}
		w.ding.DropFile(f.code)
		return nil
	case "api", "file":
		n, err := strconv.Atoi(third(args))
		if err != nil {
			return err
		}
		f := dingtalktest.Fault{Route: dingtalktest.RouteDownload, Count: n}
		if route == "file" {
			f.Route = dingtalktest.RouteFile
		}
		if late, err := time.ParseDuration(args[1]); err == nil {
			f.Action = dingtalktest.Action{Before: late}
		} else if status, err := strconv.Atoi(args[1]); err == nil {
			f.Action = dingtalktest.Status(status)
		} else if address, ok := strings.CutPrefix(args[1], "at:"); ok {
			f.Action = dingtalktest.Action{Name: "address", Status: 200, Body: fmt.Sprintf(`{"downloadUrl":%q}`, address), ContentType: "application/json"}
		} else {
			f.Action = dingtalktest.Do(args[1])
		}
		w.ding.AddFault(f)
		return nil
	}
	return fmt.Errorf("download %s?", args[0])
}

// cmdFetched is: ROUTE N: waits until N requests were answered, for an address (download) or for a file. More are a failure.
func (w *world) cmdFetched(args []string) error {
	return w.until(args[1]+" requests of "+args[0], patience, func() (bool, string) {
		n := w.entriesOf("http", args[0])
		return n == args[1], n
	})
}

// cmdGroupOfPictures is: CONV NICK N FIRST NAME: N messages with a picture each, and questions from a number on.
func (w *world) cmdGroupOfPictures(args []string) error {
	n, err := strconv.Atoi(args[2])
	first, err2 := strconv.Atoi(args[3])
	if err != nil || err2 != nil {
		return errors.Join(err, err2)
	}
	for i := range n {
		if err := w.cmdSend([]string{args[0], args[1], fmt.Sprintf("batch-%d", first+i), "rich", fmt.Sprintf("Q%d 看", first+i), "+" + args[4]}); err != nil {
			return err
		}
	}
	return nil
}

// cmdPicturedMost is: N: no request had more pictures.
func (w *world) cmdPicturedMost(args []string) error {
	most, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for _, r := range w.main.Requests() {
		n := 0
		for _, msg := range r.Messages {
			n += len(msg.Pictures)
		}
		if n > most {
			return fmt.Errorf("a request with %d pictures, want at most %d", n, most)
		}
	}
	return nil
}

// cmdFetching is: ROUTE N: waits until N requests of the route have met a fault, that of a late answer for example.
func (w *world) cmdFetching(args []string) error {
	return w.until(args[1]+" faults of "+args[0], patience, func() (bool, string) {
		n := w.entriesOf("fault", args[0])
		return n == args[1], n
	})
}

func (w *world) entriesOf(kind, route string) string {
	n := 0
	for _, e := range w.ding.Transcript() {
		if e.Kind == kind && e.Route == route {
			n++
		}
	}
	return strconv.Itoa(n)
}

// cmdPictured is: WHICH N [spare]: the last request for an answer to WHICH, of the model or of the spare one, has N pictures in all.
func (w *world) cmdPictured(args []string) error {
	m := w.main
	if third(args) == "spare" {
		m = w.spare
	}
	match := which(args[0])
	for _, r := range slices.Backward(m.Requests()) {
		if !match(r) {
			continue
		}
		n := 0
		for _, msg := range r.Messages {
			n += len(msg.Pictures)
		}
		if strconv.Itoa(n) != args[1] {
			return fmt.Errorf("%d pictures, want %s", n, args[1])
		}
		return nil
	}
	return fmt.Errorf("no request has %s", args[0])
}

// cmdFenced is: TEXT…: in the newest request for an answer the texts stand between the fences of one file.
func (w *world) cmdFenced(args []string) error {
	for _, r := range slices.Backward(w.main.Requests()) {
		if r.Kind != openaitest.Chat {
			continue
		}
		for _, msg := range r.Messages {
			opened := fileFence.FindAllStringSubmatchIndex(msg.Content, -1)
			for _, at := range opened {
				mark := msg.Content[at[2]:at[3]]
				body, _, closed := strings.Cut(msg.Content[at[1]:], "\nfile "+mark+">>>")
				missing := slices.ContainsFunc(args, func(text string) bool { return !strings.Contains(body, text) })
				if !missing && closed {
					return nil
				}
			}
		}
		return fmt.Errorf("no file of the newest request has %q between its fences:\n%s", args, r.Text())
	}
	return errors.New("there is no request")
}

// fileFence finds the opening fences of files, with their marks.
var fileFence = regexp.MustCompile(`(?m)^<<<file ([0-9a-f]{12})$`)
