package dingtalk

import (
	"regexp"
	"strings"

	"ebb/sessions"
)

func reactionName(lang string) string {
	if lang == "en" {
		return "🤔Thinking"
	}
	return "🤔思考中"
}

type mentions struct {
	bot   string // encrypted id
	alone bool   // only the robot is mentioned
}

// render turns a body into text for the model, with other content as a line in brackets, and lists its files.
func render(kind string, body object, at mentions) (string, []sessions.Attachment) {
	var files []sessions.Attachment
	if code := body.str("downloadCode", "pictureDownloadCode"); code != "" && !strings.EqualFold(kind, "richText") {
		files = append(files, sessions.Attachment{Kind: kind, Code: code, Name: clip(oneLine(body.str("fileName")), 255)})
	}
	switch strings.ToLower(kind) {
	case "text":
		return anyWords(body), files
	case "richtext":
		return renderRich(body, at)
	case "picture", "image":
		return "[图片]", files
	case "audio", "voice":
		return join("[语音]", body.str("recognition")), files
	case "video":
		return join("[视频]", body.str("recognition")), files
	case "file":
		return bracket("文件", body.str("fileName")), files
	case "chatrecord":
		return join("[聊天记录]", body.str("summary", "title", "content")), files
	case "interactivecard", "actioncard", "feedcard":
		return join("[卡片]", anyWords(body)), files
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
	return bracket("消息", kind), files
}

func renderRich(body object, at mentions) (string, []sessions.Attachment) {
	parts := body.list("richText")
	if parts == nil {
		parts = body.list("content")
	}
	if parts == nil {
		return anyWords(body), nil
	}
	var b strings.Builder
	var files []sessions.Attachment
	for i, p := range parts {
		text, file := renderPart(p, at, i == 0)
		if file != nil {
			files = append(files, *file)
			if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
				b.WriteByte('\n')
			}
			text += "\n"
		}
		b.WriteString(text)
	}
	return strings.TrimSpace(b.String()), files
}

// Some clients repeat the robot's mention as words at the beginning.
var mentionOnly = regexp.MustCompile(`^\s*@\S+\s*$`)

func renderPart(p any, at mentions, first bool) (string, *sessions.Attachment) {
	o := asObject(p)
	if o == nil {
		s, _ := p.(string)
		return clean(s), nil
	}
	kind := o.str("type", "msgType", "msgtype")
	if code := o.str("downloadCode", "pictureDownloadCode"); code != "" || kind == "picture" {
		if kind == "" || kind == "text" {
			kind = "picture"
		}
		text, _ := render(kind, o, at)
		return text, &sessions.Attachment{Kind: kind, Code: code, Name: clip(oneLine(o.str("fileName")), 255)}
	}
	if kind == "at" {
		if id := o.str("atUserId"); id != "" && id == at.bot {
			return "", nil
		}
		if name := oneLine(o.str("atName", "text")); name != "" {
			return "@" + strings.TrimPrefix(name, "@") + " ", nil
		}
		return "", nil
	}
	text := rawWords(o, "text", "content")
	if first && at.alone && mentionOnly.MatchString(text) {
		return "", nil
	}
	return text, nil
}

// rawWords keeps the spaces between the parts of a rich text.
func rawWords(o object, names ...string) string {
	for _, n := range names {
		if s, ok := o[n].(string); ok && s != "" {
			return clean(s)
		}
		if s := asString(o[n]); s != "" {
			return s
		}
	}
	return ""
}

func anyWords(body object) string {
	if s := body.str("content", "text", "markdown", "recognition", "summary"); s != "" {
		return s
	}
	if len(body.list("richText")) > 0 {
		s, _ := renderRich(body, mentions{})
		return s
	}
	for _, inner := range []string{"text", "content", "markdown", "cardContent", "sampleMarkdown"} {
		if s := gather(body[inner], 6); s != "" {
			return s
		}
	}
	return body.str("title", "unknownMsgType")
}

// gather collects the words of a tree, such as a card's, in the order of known places.
func gather(v any, depth int) string {
	if depth == 0 {
		return ""
	}
	if list, ok := v.([]any); ok {
		var lines []string
		for _, x := range list {
			if s := gather(x, depth-1); s != "" {
				lines = append(lines, s)
			}
		}
		return strings.Join(lines, "\n")
	}
	o, ok := v.(map[string]any)
	if !ok {
		return asString(v)
	}
	var lines []string
	for _, name := range []string{"title", "text", "content", "markdown", "value", "children", "elements", "contents"} {
		if s := gather(o[name], depth-1); s != "" {
			lines = append(lines, s)
		}
	}
	return strings.Join(lines, "\n")
}

func join(label, words string) string { return strings.TrimSpace(label + " " + words) }

// A name can't close the brackets.
func bracket(label, name string) string {
	name = strings.NewReplacer("[", "(", "]", ")").Replace(clip(oneLine(name), 200))
	if name == "" {
		return "[" + label + "]"
	}
	return "[" + label + ": " + name + "]"
}
