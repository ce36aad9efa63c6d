package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"

	"ebb/sessions"
)

// SaveTool is the name of the tool by which facts are saved, in turns and flushes alike.
const SaveTool = "memory_save"

// SaveDescription tells a model what the tool is for.
const SaveDescription = "Save facts worth remembering beyond this conversation: decisions, owners, deadlines, identifiers, preferences. " +
	"One fact per item, complete in itself, with names and dates. Never credentials."

// MaxFacts bounds the facts of one call.
const MaxFacts = 20

// Fact is one item of a memory_save call, as the model wrote it.
type Fact struct {
	Content string `json:"content"`
	Kind    Kind   `json:"kind"`
	Subject string `json:"subject"` // name or id of the person it is about
}

// Save is the arguments of a memory_save call.
type Save struct {
	Facts   []Fact `json:"facts"`
	Nothing bool   `json:"nothing_to_save"`
}

// SaveSchema is the JSON schema of [Save].
func SaveSchema() map[string]any {
	str := func(d string) map[string]any { return map[string]any{"type": "string", "description": d} }
	return map[string]any{
		"type": "object",
		"properties": map[string]any{
			"facts": map[string]any{
				"type": "array", "maxItems": MaxFacts,
				"items": map[string]any{
					"type": "object",
					"properties": map[string]any{
						"content": str("the fact, one or two sentences"),
						"kind":    map[string]any{"type": "string", "enum": []string{string(KindFact), string(KindProfile), string(KindPreference), string(KindDecision), string(KindTask)}},
						"subject": str("name or id of the person it is about; empty for nobody"),
					},
					"required": []string{"content", "kind"},
				},
			},
			"nothing_to_save": map[string]any{"type": "boolean", "description": "true only when there is nothing worth saving"},
		},
		"required": []string{"facts"},
	}
}

// ErrCredentials says that a call tried to save credentials and nothing else.
var ErrCredentials = errors.New("credentials are never stored")

// ParseSave reads the arguments of a call. Items that can't be facts are left out and said in rejected; the error is
// for arguments that are no such object at all, or that neither hold a usable fact nor say that there is none. It wraps
// ErrCredentials where every item was refused as one.
func ParseSave(arguments string) (s Save, rejected []string, err error) {
	var in struct {
		Facts   []json.RawMessage `json:"facts"`
		Nothing bool              `json:"nothing_to_save"`
	}
	if err := json.Unmarshal([]byte(arguments), &in); err != nil {
		return Save{}, nil, fmt.Errorf("memory_save arguments: %w", err)
	}
	s.Nothing = in.Nothing
	credentials := 0
	for i, item := range in.Facts {
		if i == MaxFacts {
			rejected = append(rejected, fmt.Sprintf("facts[%d] and all after it: more than %d at a time; save them in another call", i, MaxFacts))
			break
		}
		var f Fact
		if json.Unmarshal(item, &f) != nil {
			rejected = append(rejected, fmt.Sprintf("facts[%d]: is no object with a content and a kind that are text", i))
			continue
		}
		if why := refuse(f.Content); why != "" {
			rejected = append(rejected, fmt.Sprintf("facts[%d].content: %s", i, why))
			if why == neverStored {
				credentials++
			}
			continue
		}
		for _, part := range Split(clean(f.Content), MaxContent) {
			s.Facts = append(s.Facts, Fact{Content: part, Kind: knownKind(f.Kind), Subject: strings.TrimSpace(f.Subject)})
		}
	}
	switch {
	case len(s.Facts) > 0 || s.Nothing:
		return s, rejected, nil
	case credentials > 0 && credentials == len(rejected):
		return Save{}, rejected, fmt.Errorf("memory_save: nothing was saved: %w", ErrCredentials)
	}
	return Save{}, rejected, fmt.Errorf("memory_save: no usable fact, and nothing_to_save is not true: %s", strings.Join(rejected, "; "))
}

// neverStored is why a credential is refused.
const neverStored = "looks like a credential, which is never stored"

// maxFactBytes bounds what one item may bring, however it is split.
const maxFactBytes = 16 << 10

// refuse says why a content can't be stored, or nothing.
func refuse(content string) string {
	switch {
	case strings.TrimSpace(content) == "":
		return "is empty"
	case len(content) > maxFactBytes:
		return fmt.Sprintf("has %d bytes, want at most %d", len(content), maxFactBytes)
	case !utf8.ValidString(content):
		return "is not UTF-8"
	case sessions.HoldsSecret(content):
		return neverStored
	}
	return ""
}

// clean drops control characters and folds white space.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

func knownKind(k Kind) Kind {
	switch k {
	case KindProfile, KindPreference, KindDecision, KindTask:
		return k
	}
	return KindFact
}

// Split cuts a text into parts of at most limit characters, at the ends of sentences where there are any. The parts
// joined are the text, blanks at the cuts aside.
func Split(text string, limit int) []string {
	var parts []string
	rs := []rune(text)
	for len(rs) > limit {
		cut := limit
		for i := limit; i > limit/2; i-- {
			if strings.ContainsRune("。！？；;.!?\n", rs[i-1]) {
				cut = i
				break
			}
		}
		parts = append(parts, strings.TrimSpace(string(rs[:cut])))
		rs = rs[cut:]
	}
	return append(parts, strings.TrimSpace(string(rs)))
}

// Chat is where facts were said, for routing.
type Chat struct {
	Key          sessions.Key
	Robot        sessions.RobotCode
	Conversation sessions.ConversationID
	Private      bool
	// Roster maps the names and ids of those who spoke to their ids.
	Roster map[string]sessions.UserID
	// Person is whom the bot talks to in a private chat.
	Person sessions.UserID
}

// RosterOf lists who spoke in events: by id, by the label that transcripts show, and by nick where one person alone
// goes by it. Nicks are what people choose to write: none of them can take another's id or label.
func RosterOf(events []sessions.Event) map[string]sessions.UserID {
	ids, labels, nicks := map[string]sessions.UserID{}, map[string]sessions.UserID{}, map[string]sessions.UserID{}
	name := func(names map[string]sessions.UserID, name string, id sessions.UserID) {
		if other, taken := names[name]; taken && other != id {
			id = "" // of two people: of nobody
		}
		names[name] = id
	}
	for _, e := range events {
		if e.Role != sessions.RoleUser || e.SenderID == "" {
			continue
		}
		ids[string(e.SenderID)] = e.SenderID
		name(labels, sessions.Speaker(e.SenderNick, e.SenderID), e.SenderID)
		name(nicks, e.SenderNick, e.SenderID)
		if shown := sessions.Nick(e.SenderNick); shown != e.SenderNick {
			name(nicks, shown, e.SenderID)
		}
	}
	roster := nicks
	maps.Copy(roster, labels)
	maps.Copy(roster, ids)
	maps.DeleteFunc(roster, func(name string, id sessions.UserID) bool { return name == "" || id == "" })
	return roster
}

// Route decides who may read a fact, from its kind, its subject and the kind of chat. In a private chat what a person
// says of themself follows them; all else stays in that chat. In a group everything is the group's, but the state of
// work, which is the session's.
func Route(f Fact, c Chat) Draft {
	d := Draft{Kind: f.Kind, Content: f.Content, SubjectID: c.Roster[f.Subject]}
	session := func() Draft { d.Scope, d.ScopeID = ScopeSession, string(c.Key); return d }
	if f.Kind == KindTask {
		return session()
	}
	if !c.Private {
		d.Scope, d.ScopeID = ScopeGroup, GroupID(c.Robot, c.Conversation)
		return d
	}
	aboutThem := f.Subject == "" || d.SubjectID == c.Person
	if aboutThem && c.Person != "" && f.Kind != KindDecision {
		d.SubjectID = c.Person
		d.Scope, d.ScopeID = ScopeUser, string(c.Person)
		return d
	}
	return session()
}

// GroupID is the scope id of a conversation: two robots in one group do not share memory.
func GroupID(robot sessions.RobotCode, conversation sessions.ConversationID) string {
	return string(sessions.NewKey(robot, conversation, ""))
}
