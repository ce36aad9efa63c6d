package rows

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
)

// filled are rows with something in every field that a source can fill.
func filled() map[string]any {
	at := time.Unix(1_800_000_000, 0)
	refused := sessions.Withheld{"main": {Parts: []sessions.WithheldPart{"body"}, Class: "refused", At: at}}
	event := sessions.Event{
		ID: 7, Seq: 3, Key: "r/c", Role: sessions.RoleAssistant, SenderID: "a", SenderNick: "b", MsgID: "c", ToolCalls: []sessions.ToolCall{{ID: "1"}},
		ToolCallID: "1", ToolName: "t", Withheld: refused, Message: &sessions.Message{Webhook: "https://hook/secret", SentAt: at},
	}
	fact := memory.Memory{ID: 5, Content: "x", Key: "k", SourceSession: "r/c", SupersededBy: 6, SupersededAt: at, ExpiresAt: at, SaidAt: at, Withheld: refused}
	usage := pages.Usage{Key: "r/c", Title: "t", Day: "2026-01-31", Person: "p", Nick: "n"}
	return map[string]any{
		"session": OfListed(pages.SessionRow{Session: sessions.Session{Key: "r/c", CompactedAt: at, CompactRetryAt: at, Settings: `{"policy":"turns"}`}, Dead: 2}),
		"event":   OfEvent(event), "memory": OfMemory(fact), "fact of a person": OfPersonFact(fact),
		"message of a person": OfPersonMessage(memory.PersonMessage{Event: event}),
		"compaction":          OfAttempt(pages.CompactionRow{LogEntry: sessions.LogEntry{ID: 7, Key: "r/c", Audit: `{"calls":2}`, Undone: at}, RequesterNick: "n"}),
		"restart":             OfRestart(sessions.Restart{Replica: "a", StoppedAt: at}), "cost": OfUsage(usage), "debt": Debt{SessionKey: "r/c"},
		"file":     OfFile(pages.FileRow{KeptFile: sessions.KeptFile{Key: "r/c", Keeper: "n"}}),
		"schedule": OfSchedule(pages.ScheduleRow{Schedule: sessions.Schedule{Key: "r/c", SettledAt: at}}),
	}
}

// Scripts read these: every key is in snake_case at every depth, a session is a session_key, and no row shows where a reply may be sent.
func TestKeysOfRows(t *testing.T) {
	t.Parallel()
	snake := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	for name, row := range filled() {
		text, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		var fields any
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		var walk func(any)
		walk = func(v any) {
			switch v := v.(type) {
			case map[string]any:
				for key, x := range v {
					if !snake.MatchString(key) || key == "session" {
						t.Errorf("%s has the key %q", name, key)
					}
					walk(x)
				}
			case []any:
				for _, x := range v {
					walk(x)
				}
			}
		}
		walk(fields)
		if strings.Contains(string(text), "hook") {
			t.Errorf("%s shows where a reply may be sent: %s", name, text)
		}
	}
}

// A reader that does not count leaves a field out; a count of nothing is there.
func TestUnreadFieldsAreAbsent(t *testing.T) {
	t.Parallel()
	for want, row := range map[bool]Session{false: OfSession(sessions.Session{}), true: OfListed(pages.SessionRow{})} {
		text, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{`"dead":0`, `"flush_owed":false`, `"model":""`, `"waiting":0`} {
			if strings.Contains(string(text), key) != want {
				t.Errorf("%s in %s: want %v", key, text, want)
			}
		}
	}
}

// fill sets every field at any depth. Texts are JSON, so that fields of JSON keep them.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(`{"a":1}`)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(time.Second))
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1_800_000_000, 0)))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	}
}

func full[T any]() (source T) {
	fill(reflect.ValueOf(&source).Elem())
	return source
}

// A row takes over every field that its source has. The exceptions are those that a caller reads elsewhere.
func TestRowsTakeEveryField(t *testing.T) {
	t.Parallel()
	elsewhere := map[string]bool{
		"WithheldEvents": true, "ErasedAt": true, "SummaryID": true, "Flushes": true, "Summary": true, "Month": true,
	}
	for _, row := range []any{
		OfListed(full[pages.SessionRow]()), OfEvent(full[sessions.Event]()), OfAttempt(full[pages.CompactionRow]()), OfMemory(full[memory.Memory]()),
		OfRestart(full[sessions.Restart]()), OfUsage(full[pages.Usage]()), OfSchedule(full[pages.ScheduleRow]()), OfFile(full[pages.FileRow]()),
		OfPersonFact(full[memory.Memory]()), OfPersonMessage(full[memory.PersonMessage]()),
	} {
		v := reflect.ValueOf(row)
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; v.Field(i).IsZero() && !elsewhere[name] {
				t.Errorf("%s.%s is empty", v.Type().Name(), name)
			}
		}
	}
}
