package frame

import (
	"testing"

	"ebb/sessions/sessionstest"
)

// For any texts in a frame, decoding it takes time in proportion to their length.
func TestGrowth(t *testing.T) {
	decoded := func(over map[string]any) func(string) {
		return func(s string) {
			for name := range over {
				switch name {
				case "text":
					over[name] = map[string]any{"content": s, "isReplyMsg": true, "repliedMsg": map[string]any{"msgType": "text", "content": map[string]any{"text": s}}}
				case "content":
					over[name] = map[string]any{"richText": []any{map[string]any{"text": s}, map[string]any{"text": "\n"}, map[string]any{"text": s}}}
				case "senderNick", "conversationTitle", "msgtype":
					over[name] = s
				}
			}
			_, _ = Decode(asJSON(t, envelope(over)), "robot")
		}
	}
	for name, f := range map[string]func(string){
		"text and quote": decoded(map[string]any{"text": nil}),
		"rich text":      decoded(map[string]any{"content": nil, "msgtype": "richText"}),
		"names":          decoded(map[string]any{"senderNick": nil, "conversationTitle": nil}),
		"raw":            func(s string) { _, _ = Decode(s, "robot") },
	} {
		t.Run(name, func(t *testing.T) { sessionstest.CheckGrowth(t, name, sessionstest.LongMessage, f) })
	}
}
