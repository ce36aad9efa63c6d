package openai

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	goopenai "github.com/sashabaranov/go-openai"

	"ebb/sessions"
	"ebb/sessions/llm"
)

// message is a message of a request. go-openai's own leaves an empty content out, which endpoints refuse.
type message struct {
	Role      string              `json:"role"`
	Content   any                 `json:"content"` // a string, null or parts
	Reasoning string              `json:"reasoning_content,omitempty"`
	Calls     []goopenai.ToolCall `json:"tool_calls,omitempty"`
	CallID    string              `json:"tool_call_id,omitempty"`

	pictures []llm.Picture
}

const (
	roleSystem    = goopenai.ChatMessageRoleSystem
	roleUser      = goopenai.ChatMessageRoleUser
	roleAssistant = goopenai.ChatMessageRoleAssistant
	roleTool      = goopenai.ChatMessageRoleTool

	noThought = " "                   // stands for reasoning that is not known any more: some providers refuse an empty one
	noWords   = "(empty)"             // providers refuse a message without a word
	goOn      = "(Please go on.)"     // a last user message
	earlier   = "(Earlier messages.)" // a first one
	noted     = "(Noted.)"            // between a result and the next question
	callsOnly = "(Tools are called.)"
	// unseen stands for pictures that a model takes none of: without it some describe pictures that they did not get.
	unseen = "(Pictures were sent here, and you can't see pictures. Say so, and describe none.)"
)

// writeMessages writes what the provider accepts, and reports the properties whose opposite it shows. The caller pairs calls and
// results.
func (f forms) writeMessages(in []llm.Message) (out []message, shows property) {
	ids := callIDs{short: f.has(shortIDs)}
	tools := map[string]string{} // names by id
	out = make([]message, 0, len(in))
	for _, m := range in {
		if m.Role == roleAssistant && m.Content == "" && (len(m.ToolCalls) == 0 || f.has(noTools)) {
			for _, c := range m.ToolCalls {
				tools[c.ID] = c.Name
			}
			continue
		}
		one := message{Role: m.Role, Content: m.Content}
		if !f.has(noPictures) {
			one.pictures = m.Pictures
		} else if len(m.Pictures) > 0 {
			one.Content = strings.TrimSpace(m.Content + "\n" + unseen)
		}
		switch m.Role {
		case roleAssistant:
			for _, c := range m.ToolCalls {
				tools[c.ID] = c.Name
			}
			if f.has(noTools) {
				break
			}
			one.Calls = ids.mapCalls(m.ToolCalls)
			if f.has(wantsThoughts) {
				one.Reasoning = cmp.Or(m.Reasoning, noThought)
			}
		case roleTool:
			if f.has(noTools) {
				one.Role, one.Content = roleUser, fmt.Sprintf("Result of %s:\n%s", cmp.Or(tools[m.ToolCallID], "a tool"), m.Content)
			} else {
				one.CallID = ids.mapResult(m.ToolCallID)
			}
		}
		out = append(out, one)
	}
	out = f.mergeRoles(out)
	for i := range out {
		shows |= f.finishMessage(&out[i])
		switch {
		case i == 0 || out[i].Role == roleTool:
		case out[i].Role == out[i-1].Role, out[i].Role == roleUser && out[i-1].Role == roleTool, out[i].Role == roleAssistant && out[i-1].Role == roleSystem:
			shows |= mergedRoles
		}
	}
	if n := len(out); n > 0 && out[n-1].Role != roleUser {
		shows |= lastUser
	}
	return out, shows
}

// mergeRoles changes who speaks: system messages become a part of the first user's, neighbours of one role become one.
func (f forms) mergeRoles(in []message) []message {
	var system []string
	out := make([]message, 0, len(in)+1)
	for _, m := range in {
		last := len(out) - 1
		switch {
		case f.has(noSystem) && m.Role == roleSystem:
			system = append(system, m.Content.(string))
			continue
		case len(system) > 0 && m.Role != roleUser:
			out = append(out, message{Role: roleUser, Content: strings.Join(system, "\n\n")})
			system = nil
		case len(system) > 0:
			text := strings.Join(append(system, m.Content.(string)), "\n\n")
			m.pictures = movePictures(m.pictures, len(text)-len(m.Content.(string)))
			m.Content, system = text, nil
		case f.has(mergedRoles) && m.Role == roleAssistant && (last < 0 || out[last].Role == roleSystem):
			out = append(out, message{Role: roleUser, Content: earlier})
		case f.has(mergedRoles) && m.Role == roleUser && last >= 0 && out[last].Role == roleTool:
			out = append(out, message{Role: roleAssistant, Content: noted})
		}
		if last := len(out) - 1; f.has(mergedRoles) && last >= 0 && out[last].Role == m.Role && m.Role != roleTool {
			out[last] = joined(out[last], m)
			continue
		}
		out = append(out, m)
	}
	if len(system) > 0 {
		out = append(out, message{Role: roleUser, Content: strings.Join(system, "\n\n")})
	}
	if n := len(out); f.has(lastUser) && n > 0 && out[n-1].Role != roleUser {
		out = append(out, message{Role: roleUser, Content: goOn})
	}
	return out
}

func joined(a, b message) message {
	texts := slices.DeleteFunc([]string{a.Content.(string), b.Content.(string)}, func(s string) bool { return s == "" })
	text := strings.Join(texts, "\n\n")
	a.pictures = slices.Concat(a.pictures, movePictures(b.pictures, len(text)-len(b.Content.(string))))
	a.Content = text
	a.Calls, a.Reasoning = append(a.Calls, b.Calls...), cmp.Or(b.Reasoning, a.Reasoning)
	return a
}

// movePictures returns the pictures of a text that stands by bytes further behind.
func movePictures(pictures []llm.Picture, by int) []llm.Picture {
	moved := slices.Clone(pictures)
	for i := range moved {
		moved[i].At += by
	}
	return moved
}

// finishMessage writes the content in the accepted form.
func (f forms) finishMessage(m *message) (shows property) {
	text, _ := m.Content.(string)
	switch {
	case text == "" && len(m.Calls) == 0:
		text = noWords
	case text == "" && f.has(someText):
		text = callsOnly
	case text == "" && f.has(emptyText):
		shows |= someText
	case text == "":
		shows |= emptyText
	}
	switch {
	case shows&emptyText != 0:
		m.Content = nil
	case len(m.pictures) > 0:
		m.Content = partsOf(text, m.pictures)
		shows |= noPictures
	case f.has(textParts):
		m.Content = []map[string]string{{"type": "text", "text": text}}
	default:
		m.Content = text
		shows |= textParts
	}
	if m.Role == roleSystem {
		shows |= noSystem
	}
	if m.Role == roleAssistant && m.Reasoning == "" {
		shows |= wantsThoughts
	}
	if len(m.Calls) > 0 || m.Role == roleTool {
		shows |= noTools
		if !f.has(shortIDs) {
			shows |= shortIDs
		}
	}
	return shows
}

// part is a part of a message's content.
type part struct {
	Type string    `json:"type"`
	Text string    `json:"text,omitempty"`
	URL  *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

// partsOf puts pictures at their places between the words. No part is empty, and the first is of words: some providers want one.
func partsOf(text string, pictures []llm.Picture) []part {
	var parts []part
	at := 0
	words := func(to int) {
		if s := text[at:to]; strings.TrimSpace(s) != "" || len(parts) == 0 {
			parts = append(parts, part{Type: "text", Text: cmp.Or(s, noWords)})
		}
		at = to
	}
	for _, p := range pictures {
		words(max(at, min(p.At, len(text))))
		parts = append(parts, part{Type: "image_url", URL: &imageURL{"data:" + p.Type + ";base64," + base64.StdEncoding.EncodeToString(p.Body)}})
	}
	if at < len(text) {
		words(len(text))
	}
	return parts
}

// callIDs makes ids unique in a request: providers begin again with each answer, and others refuse a repeated one. Short ids
// are the ones that all providers take.
type callIDs struct {
	short bool
	used  map[string]bool
	now   map[string]string // ids of the last calls, by the provider's id
}

func (ids *callIDs) mapCalls(in []sessions.ToolCall) []goopenai.ToolCall {
	if len(in) == 0 {
		return nil
	}
	if ids.used == nil {
		ids.used = map[string]bool{}
	}
	ids.now = map[string]string{}
	out := make([]goopenai.ToolCall, len(in))
	for i, c := range in {
		id := ids.mapID(c.ID)
		for n := 2; ids.used[id]; n++ {
			id = ids.mapID(fmt.Sprintf("%s_%d", c.ID, n))
		}
		ids.used[id], ids.now[c.ID] = true, id
		out[i] = goopenai.ToolCall{ID: id, Type: goopenai.ToolTypeFunction, Function: goopenai.FunctionCall{Name: c.Name, Arguments: objectOr(c.Arguments)}}
	}
	return out
}

func (ids *callIDs) mapResult(id string) string {
	if now := ids.now[id]; now != "" {
		return now
	}
	return ids.mapID(id)
}

const idLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

func (ids *callIDs) mapID(id string) string {
	if !ids.short {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	short := make([]byte, 9)
	for i := range short {
		short[i] = idLetters[int(sum[i])%len(idLetters)]
	}
	return string(short)
}

// Providers' templates require a JSON object as args.
func objectOr(args string) string {
	var o map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &o) != nil || o == nil {
		return "{}"
	}
	return args
}
