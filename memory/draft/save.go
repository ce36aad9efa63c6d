package draft

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"ebb/memory"
	"ebb/memory/classify"
	"ebb/memory/text"
	"ebb/sessions/llm"
)

// SaveTool is the tool that saves facts, in turns and flushes.
const SaveTool = "memory_save"

// saveDescription states the tool's purpose to a model.
const saveDescription = "Save lasting facts: decisions, owners, deadlines, identifiers, preferences. " +
	"One complete fact per item, with names and dates."

// MaxFacts bounds the facts of one call.
const MaxFacts = 20

// Save is the arguments of a memory_save call.
type Save struct {
	Facts   []memory.Fact `json:"facts"`
	Nothing bool          `json:"nothing_to_save"`
	// Full says that there may be more to save than [MaxFacts].
	Full bool `json:"-"`
	// Refused counts the items that are never kept, by [classify.Refusal] kind.
	Refused map[string]int `json:"-"`
}

// SaveSpec describes the tool to a model that must call it; its arguments are a [Save].
func SaveSpec() llm.ToolSpec {
	schema := saveSchema()
	schema["properties"].(map[string]any)["nothing_to_save"] = map[string]any{"type": "boolean", "description": "true only when there is nothing worth saving"}
	return llm.ToolSpec{Name: SaveTool, Description: saveDescription, Schema: schema}
}

// TurnSaveSpec is [SaveSpec] for a turn, which calls the tool only with facts.
func TurnSaveSpec() llm.ToolSpec {
	return llm.ToolSpec{Name: SaveTool, Description: saveDescription, Schema: saveSchema()}
}

func saveSchema() map[string]any {
	str := func(d string) map[string]any { return map[string]any{"type": "string", "description": d} }
	kinds := []string{string(memory.KindFact), string(memory.KindProfile), string(memory.KindPreference), string(memory.KindDecision), string(memory.KindTask)}
	return map[string]any{
		"type": "object",
		"properties": map[string]any{
			"facts": map[string]any{
				"type": "array",
				"items": map[string]any{
					"type": "object",
					"properties": map[string]any{
						"content":  map[string]any{"type": "string"},
						"kind":     map[string]any{"type": "string", "enum": kinds},
						"subject":  str("person it is about"),
						"key":      str("what it is the value of"),
						"replaces": map[string]any{"type": "integer", "description": "id of corrected fact"},
						"by":       str("who said it"),
					},
					"required": []string{"content", "kind"},
				},
			},
		},
		"required": []string{"facts"},
	}
}

// ErrNotSaved says that the model neither saved a fact nor said that there is none.
var ErrNotSaved = errors.New("model did not call memory_save")

// ErrUnfit says that every fact of a call was refused for its content.
var ErrUnfit = errors.New("what it holds is never kept")

// ParseSave reads the arguments of a call; rejected lists malformed items. Arguments with neither a usable fact nor
// nothing_to_save are an error, which wraps [ErrUnfit] if every item was refused for its content.
func ParseSave(arguments string) (s Save, rejected []string, err error) {
	var in struct {
		Facts   []json.RawMessage `json:"facts"`
		Nothing bool              `json:"nothing_to_save"`
	}
	if err := json.Unmarshal([]byte(arguments), &in); err != nil {
		return Save{}, nil, fmt.Errorf("arguments of memory_save: %w", err)
	}
	s.Nothing, s.Full = in.Nothing, len(in.Facts) >= MaxFacts
	unfit, items := 0, min(len(in.Facts), MaxFacts)
	s.Refused = map[string]int{}
	for i, item := range in.Facts {
		if i == MaxFacts {
			rejected = append(rejected, fmt.Sprintf("facts[%d] and all after it: more than %d at a time; save them in another call", i, MaxFacts))
			break
		}
		f, refused := readFact(item)
		if refused.Why != "" {
			rejected = append(rejected, fmt.Sprintf("facts[%d]%s", i, refused.Why))
			if refused.Kind != "" {
				unfit++
				s.Refused[refused.Kind]++
			}
			continue
		}
		s.Facts = append(s.Facts, splitFact(f)...)
	}
	switch {
	case len(s.Facts) > 0 || s.Nothing:
		return s, rejected, nil
	case unfit > 0 && unfit == items:
		return Save{Full: s.Full, Refused: s.Refused}, rejected, fmt.Errorf("memory_save: nothing was saved: %w: %s", ErrUnfit, strings.Join(rejected, "; "))
	}
	return Save{}, rejected, fmt.Errorf("memory_save: no usable fact, and nothing_to_save is not true: %s", strings.Join(rejected, "; "))
}

// The first part alone has the key, which has one value, and the replaced fact, which has one successor.
func splitFact(f memory.Fact) []memory.Fact {
	var out []memory.Fact
	for i, part := range text.Split(f.Content, memory.MaxContent) {
		next := f
		if next.Content = part; i > 0 {
			next.Key, next.Replaces = "", 0
		}
		out = append(out, next)
	}
	return out
}

// readFact judges one fact of a call by itself, so that a bad one does not take the others along. Refusals are written for the model,
// which reads them and tries again. A scope is no field: the place decides who may read a fact, and never the model.
func readFact(item json.RawMessage) (memory.Fact, classify.Refusal) {
	var raw struct {
		memory.Fact

		Replaces   json.RawMessage `json:"replaces"`
		Scope      any             `json:"scope"`
		ScopeID    any             `json:"scope_id"`
		Visibility any             `json:"visibility"`
	}
	if json.Unmarshal(item, &raw) != nil {
		return memory.Fact{}, classify.Refusal{Why: ": is no object with a content and a kind that are text"}
	}
	f := raw.Fact
	if raw.Scope != nil || raw.ScopeID != nil || raw.Visibility != nil {
		return memory.Fact{}, classify.Refusal{Why: ".scope: there is no such field; who may read a fact is decided by where it was said. Leave it out"}
	}
	var ok bool
	if f.Replaces, ok = memoryID(raw.Replaces); !ok {
		return memory.Fact{}, classify.Refusal{Why: ".replaces: is no id of a known fact, want a number as in 12; leave it out where there is none"}
	}
	if why := contentFault(f.Content); why != "" {
		return memory.Fact{}, classify.Refusal{Why: ".content: " + why}
	}
	f.Content = classify.DropRedacted(text.Clean(f.Content))
	if f.Content == "" {
		return memory.Fact{}, classify.Refusal{Why: ".content: " + classify.NeverStored, Kind: classify.Credential}
	}
	if no := classify.Refuse(f.Content); no.Why != "" {
		return memory.Fact{}, classify.Refusal{Why: ".content: " + no.Why, Kind: no.Kind}
	}
	for _, label := range []struct{ name, text string }{{"subject", f.Subject}, {"key", f.Key}, {"by", f.By}} {
		if utf8.RuneCountInString(label.text) > maxLabel || text.HasManyControls(label.text) {
			return memory.Fact{}, classify.Refusal{Why: fmt.Sprintf(".%s: want a name of at most %d characters", label.name, maxLabel)}
		}
		if classify.HasCredential(label.text) {
			return memory.Fact{}, classify.Refusal{Why: fmt.Sprintf(".%s: %s", label.name, classify.NeverStored), Kind: classify.Credential}
		}
		if why := classify.Instruction(text.Clean(label.text)); why != "" {
			return memory.Fact{}, classify.Refusal{Why: fmt.Sprintf(".%s: %s", label.name, why), Kind: classify.Order}
		}
	}
	if key := text.Clean(f.Key); key != "" && !strings.ContainsAny(f.Content, " ，。；") && classify.HasCredential(key+": "+f.Content) {
		return memory.Fact{}, classify.Refusal{Why: ".content: " + classify.NeverStored, Kind: classify.Credential}
	}
	f.Kind, f.Subject, f.Key, f.By = knownKind(f.Kind), text.Clean(f.Subject), text.Clean(f.Key), text.Clean(f.By)
	return f, classify.Refusal{}
}

// memoryID reads 12, "12", "#12" and "[#12]". Nothing, null and "" are none, 0.
func memoryID(raw json.RawMessage) (id int64, ok bool) {
	text := strings.TrimSpace(strings.Trim(string(raw), `"`))
	if text == "" || text == "null" || text == "0" {
		return 0, true
	}
	text = strings.TrimPrefix(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), "#")
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil && id > 0
}

const (
	MaxFactBytes = 16 << 10 // bytes of the whole item, also if it is split
	maxLabel     = 80       // characters of a key or a name
)

func contentFault(content string) string {
	switch {
	case len(content) > MaxFactBytes:
		return fmt.Sprintf("has %d bytes, want at most %d", len(content), MaxFactBytes)
	case !utf8.ValidString(content), strings.ContainsRune(content, utf8.RuneError):
		return "is not UTF-8"
	case text.HasManyControls(content):
		return "is full of control characters; write the fact in words"
	case text.Clean(content) == "":
		return "is empty"
	}
	return ""
}

func knownKind(k memory.Kind) memory.Kind {
	switch k {
	case memory.KindProfile, memory.KindPreference, memory.KindDecision, memory.KindTask:
		return k
	}
	return memory.KindFact
}
