package written

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"ebb/sessions"
)

// jsonAt reads the value at the beginning of a text; n is 0 for none.
func jsonAt(s string) (value json.RawMessage, n int) {
	d := json.NewDecoder(strings.NewReader(s))
	if d.Decode(&value) != nil {
		return nil, 0
	}
	return value, int(d.InputOffset())
}

// isCut reports whether more text may complete a JSON value.
func isCut(s string) bool {
	var v json.RawMessage
	err := json.NewDecoder(strings.NewReader(s)).Decode(&v)
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// callsIn reads the calls of a JSON value in the forms of providers; nil: it has another form.
func callsIn(value json.RawMessage) []sessions.ToolCall {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil {
		var calls []sessions.ToolCall
		for _, one := range list {
			found := callsIn(one)
			if len(found) == 0 {
				return nil
			}
			calls = append(calls, found...)
		}
		return calls
	}
	var o struct {
		Name, Tool, ToolName                       string
		Action                                     json.RawMessage
		ActionInput                                json.RawMessage `json:"action_input"`
		ToolUnder                                  string          `json:"tool_name"`
		Function                                   json.RawMessage `json:"function"`
		Call                                       json.RawMessage `json:"function_call"`
		Calls                                      json.RawMessage `json:"tool_calls"`
		Arguments, Parameters, Args, Input, Params json.RawMessage
		ToolInput                                  json.RawMessage `json:"tool_input"`
	}
	if json.Unmarshal(value, &o) != nil {
		return nil
	}
	for _, inner := range []json.RawMessage{o.Calls, o.Call, o.Function} {
		if len(inner) > 0 && (inner[0] == '{' || inner[0] == '[') {
			return callsIn(inner)
		}
	}
	name := o.Name
	for _, other := range []string{o.Tool, o.ToolName, o.ToolUnder, text(o.Function), text(o.Action)} {
		if name == "" {
			name = other
		}
	}
	name = strings.TrimPrefix(name, "functions.")
	for _, args := range []json.RawMessage{o.Arguments, o.Parameters, o.Args, o.Input, o.Params, o.ToolInput, o.ActionInput} {
		if s := text(args); s != "" {
			args = json.RawMessage(s)
		}
		var object map[string]json.RawMessage
		if name != "" && json.Unmarshal(args, &object) == nil && object != nil {
			return []sessions.ToolCall{{Name: name, Arguments: string(args)}}
		}
	}
	return nil
}

func text(raw json.RawMessage) string {
	s, err := strconv.Unquote(string(raw))
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
