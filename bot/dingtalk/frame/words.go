package frame

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ebb/bot/dingtalk/value"
	"ebb/sessions"
)

// render turns a body into text for the model, with other content as a line in brackets, and lists its files.
func render(kind string, body value.Object, at mentions) (string, []sessions.Attachment) {
	var files []sessions.Attachment
	if code := body.Str("downloadCode", "pictureDownloadCode"); code != "" && !strings.EqualFold(kind, "richText") {
		files = append(files, attachmentOf(kind, code, body))
	}
	switch strings.ToLower(kind) {
	case "text":
		return besideMention(anyWords(body), at), files
	case "richtext":
		return renderRich(body, at)
	case "picture", "image":
		return "[图片]", files
	case "audio", "voice":
		return labelled("[语音]", body.Str("recognition")), files
	case "video":
		return labelled("[视频]", body.Str("recognition")), files
	case "file":
		return bracketed("文件", body.Str("fileName")), files
	case "chatrecord":
		return renderRecord(body, maxRecordDepth), files
	case "interactivecard", "actioncard", "feedcard":
		return labelled("[卡片]", anyWords(body)), files
	case "unknownmsgtype":
		return "[不支持的消息]", files
	case "unknown":
		if words := anyWords(body); words != "" || len(files) == 0 {
			return words, files
		}
		return "[附件]", files
	}
	if words := anyWords(body); words != "" {
		return words, files
	}
	return bracketed("消息", kind), files
}

func attachmentOf(kind, code string, o value.Object) sessions.Attachment {
	a := sessions.Attachment{Kind: kind, Code: code, Name: value.Clip(value.OneLine(o.Str("fileName")), 255)}
	if other := o.Str("pictureDownloadCode"); other != code {
		a.Other = other
	}
	return a
}

// renderRich joins the parts of a rich text. Mentions before a command are dropped, or "@Ebb @Li /help" would be no command.
func renderRich(body value.Object, at mentions) (string, []sessions.Attachment) {
	parts := body.List("richText")
	if parts == nil {
		parts = body.List("content")
	}
	if parts == nil {
		return anyWords(body), nil
	}
	var b strings.Builder
	var files []sessions.Attachment
	mentionsOnly := true
	first, last := outerParts(parts)
	for i, p := range parts {
		text, file := renderPart(p, at, i == first || i == last)
		if file != nil {
			files = append(files, *file)
			if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
				b.WriteByte('\n')
			}
			text += "\n"
		}
		if at.ours && mentionsOnly && beginsCommand(text) {
			b.Reset()
		}
		mentionsOnly = mentionsOnly && file == nil && (strings.TrimSpace(text) == "" || isMention(text) || value.ObjectOf(p).Str("type") == "at")
		b.WriteString(text)
	}
	return strings.TrimSpace(b.String()), files
}

// outerParts returns the places of the first and the last part with anything in it. Clients put blanks around a mention.
func outerParts(parts []any) (first, last int) {
	first = slices.IndexFunc(parts, isFilled)
	for last = len(parts) - 1; last > first && !isFilled(parts[last]); last-- {
	}
	return first, last
}

func isFilled(part any) bool {
	o := value.ObjectOf(part)
	if o == nil {
		s, _ := part.(string)
		return strings.TrimSpace(s) != ""
	}
	kind := o.Str("type", "msgType", "msgtype")
	return kind != "" && kind != "text" || o.Str("downloadCode", "pictureDownloadCode") != "" || strings.TrimSpace(rawWords(o, "text", "content")) != ""
}

// renderPart returns the words of a part, or its file. The mention of the bot itself says nothing to the model and is left out.
func renderPart(p any, at mentions, outer bool) (string, *sessions.Attachment) {
	o := value.ObjectOf(p)
	if o == nil {
		s, _ := p.(string)
		return value.Clean(s), nil
	}
	kind := o.Str("type", "msgType", "msgtype")
	if code := o.Str("downloadCode", "pictureDownloadCode"); code != "" || kind == "picture" {
		if kind == "" || kind == "text" {
			kind = "picture"
		}
		text, _ := render(kind, o, at)
		file := attachmentOf(kind, code, o)
		return text, &file
	}
	if kind == "at" {
		if id := o.Str("atUserId"); id != "" && id == at.bot {
			return "", nil
		}
		if name := value.OneLine(o.Str("atName", "text")); name != "" {
			return "@" + strings.TrimPrefix(name, "@") + " ", nil
		}
		return "", nil
	}
	text := rawWords(o, "text", "content")
	if outer {
		text = besideMention(text, at)
	}
	return text, nil
}

// besideMention drops a text that is nothing but the robot's mention: some clients repeat it as words.
func besideMention(text string, at mentions) string {
	if at.alone && isMention(text) {
		return ""
	}
	return text
}

// rawWords keeps the spaces between the parts of a rich text.
func rawWords(o value.Object, names ...string) string {
	for _, n := range names {
		if s, ok := o[n].(string); ok && s != "" {
			return value.Clean(s)
		}
		if s := value.String(o[n]); s != "" {
			return s
		}
	}
	return ""
}

func anyWords(body value.Object) string {
	if s := body.Str("content", "text", "markdown", "recognition", "summary"); s != "" {
		return s
	}
	if len(body.List("richText")) > 0 {
		s, _ := renderRich(body, mentions{})
		return s
	}
	for _, inner := range []string{"text", "content", "markdown", "cardContent", "sampleMarkdown"} {
		if s := gatherWords(body[inner], 6); s != "" {
			return s
		}
	}
	return body.Str("title", "unknownMsgType")
}

// gatherWords collects the words of a tree, such as a card's, in the order of known places.
func gatherWords(v any, depth int) string {
	if depth == 0 {
		return ""
	}
	if list, ok := v.([]any); ok {
		var lines []string
		for _, x := range list {
			if s := gatherWords(x, depth-1); s != "" {
				lines = append(lines, s)
			}
		}
		return strings.Join(lines, "\n")
	}
	o, ok := v.(map[string]any)
	if !ok {
		return value.String(v)
	}
	var lines []string
	for _, name := range []string{"title", "text", "content", "markdown", "value", "children", "elements", "contents"} {
		if s := gatherWords(o[name], depth-1); s != "" {
			lines = append(lines, s)
		}
	}
	return strings.Join(lines, "\n")
}

func labelled(label, words string) string { return strings.TrimSpace(label + " " + words) }

// A name can't close the brackets.
func bracketed(label, name string) string {
	name = strings.NewReplacer("[", "(", "]", ")").Replace(value.Clip(value.OneLine(name), 200))
	if name == "" {
		return "[" + label + "]"
	}
	return "[" + label + ": " + name + "]"
}

// Bounds of a forwarded record: its messages, the characters of each and of all, and the records within records.
const (
	maxRecordLines = 100
	maxRecordLine  = 500
	maxRecordText  = 8000
	maxRecordDepth = 3
)

// renderRecord shows the messages of a forwarded record as quoted lines: they are no statements of the sender. Without
// messages it shows the summary that DingTalk made.
func renderRecord(body value.Object, depth int) string {
	head := bracketed("聊天记录", body.Str("title"))
	parts := body.List("chatRecord")
	if len(parts) == 0 {
		parts = body.List("records")
	}
	var b strings.Builder
	left, room := 0, maxRecordText
	for i, p := range parts {
		text := quoteLines(recordLine(value.ObjectOf(p), depth))
		if room -= len([]rune(text)); i >= maxRecordLines || room < 0 {
			left = len(parts) - i
			break
		}
		b.WriteString("\n" + text)
	}
	if b.Len() == 0 {
		if words := body.Str("summary", "content"); words != "" {
			return head + "\n" + quoteLines(value.Clip(words, maxRecordText))
		}
		return head
	}
	if left > 0 {
		fmt.Fprintf(&b, "\n> …（还有 %d 条）", left)
	}
	return head + b.String()
}

func recordLine(o value.Object, depth int) string {
	body := wordsObject(o["content"])
	if body == nil {
		body = wordsObject(o["text"])
	}
	kind := kindOf(o, body)
	nick := cmp.Or(sessions.Nick(o.Str("senderNick", "senderName", "nick")), "某人")
	var text string
	switch {
	case !strings.EqualFold(kind, "chatRecord"):
		text, _ = render(kind, body, mentions{})
		text = value.Clip(text, maxRecordLine)
	case depth > 1:
		text = renderRecord(body, depth-1)
	default:
		text = bracketed("聊天记录", body.Str("title"))
	}
	if at := o.Millis("createAt", "createdAt", "sendTime", "time"); !at.IsZero() {
		nick += at.In(recordZone).Format(" (2006-01-02 15:04 UTC+8)")
	}
	return nick + ": " + text
}

// recordZone is that of DingTalk's clients. The lines of a record name it, as they are words of a message.
var recordZone = time.FixedZone("", 8*60*60)

func quoteLines(text string) string {
	return "> " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n> ")
}
