package frame

import (
	"strings"

	"ebb/bot/dingtalk/value"
)

// maxID bounds ids in bytes, as indexes require.
const maxID = 512

// Text messages have it in text, others in content.
func bodyOf(o value.Object) value.Object {
	if t := wordsObject(o["text"]); t != nil && (!o.Has("content") || strings.EqualFold(o.Str("msgtype", "msgType"), "text")) {
		return t
	}
	return wordsObject(o["content"])
}

// wordsObject accepts an object, an object in a string, or a plain string.
func wordsObject(v any) value.Object {
	if m := value.ObjectOf(v); m != nil {
		return m
	}
	switch v := v.(type) {
	case []any:
		return value.Object{"richText": v}
	default:
		if s := value.String(v); s != "" {
			return value.Object{"content": s}
		}
	}
	return nil
}

func kindOf(o, body value.Object) string {
	if k := value.Clip(value.OneLine(o.Str("msgtype", "msgType")), 64); k != "" {
		return k
	}
	switch {
	case len(body.List("richText")) > 0:
		return "richText"
	case body.Has("recognition"):
		return "audio"
	case body.Has("fileName"):
		return "file"
	case body.Has("videoType"):
		return "video"
	case body.Has("downloadCode") || body.Has("pictureDownloadCode"):
		return "picture"
	case body.Str("content", "text") != "" || o.Has("text"):
		return "text"
	}
	return "unknown"
}

// boundedID drops ids that are too long.
func boundedID(s string) string {
	if len(s) > maxID {
		return ""
	}
	return s
}
