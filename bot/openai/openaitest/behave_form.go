package openaitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// formBehaviours are providers that accept requests in a certain form only.
var formBehaviours = slices.Concat(blindBehaviours, []Behaviour{
	{Name: "alternating_roles", Refuse: refuseSameRoles},
	{Name: "alternating_roles_zh", Refuse: func(_ string, r Request) (Reply, bool) { // words without a reason
		_, same := refuseSameRoles("", r)
		return refuse(http.StatusBadRequest, `{"error":{"code":"1214","message":"messages 参数非法。请检查文档。"}}`), same
	}},
	// Gemma behind llama.cpp: the template raises one error for a system message, neighbours of one role and results of tools.
	{Name: "gemma", Refuse: func(_ string, r Request) (Reply, bool) {
		for i, m := range r.Messages {
			if want := []string{"user", "assistant"}[i%2]; m.Role != want {
				return refuse(http.StatusInternalServerError, `{"error":{"code":500,"message":"Conversation roles must alternate user/assistant/user/assistant/... at row 1","type":"server_error"}}`), true
			}
		}
		return refuse(http.StatusInternalServerError, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`), len(r.Tools) > 0
	}},
	// The key content stands beside tool calls, too, whatever its value.
	{Name: "content_required", Refuse: anyMessage("messages[%d]: missing field `content` at line 1 column 1000", func(m map[string]json.RawMessage) bool { return m["content"] == nil })},
	{Name: "content_string", Refuse: anyMessage("messages.%d.content: Input should be a valid string", func(m map[string]json.RawMessage) bool { return string(m["content"]) == "null" || m["content"] == nil })},
	{Name: "content_words", Refuse: anyMessage("messages[%d].content 不能为空", func(m map[string]json.RawMessage) bool {
		return slices.Contains([]string{"", "null", `""`}, string(m["content"]))
	})},
	{Name: "content_parts", Refuse: anyMessage("messages.%d.content: Input should be a valid list", func(m map[string]json.RawMessage) bool {
		return len(m["content"]) > 0 && m["content"][0] == '"'
	})},
	{Name: "no_system_role", Refuse: anyMessage("System role not supported (message %d)", isRole("system"))},
	{Name: "no_tool_role", Refuse: anyMessage("messages[%d].role: unknown variant `tool`, expected one of `system`, `user`, `assistant`", isRole("tool"))},
	{Name: "no_tools", Refuse: func(_ string, r Request) (Reply, bool) {
		return refuse(http.StatusBadRequest, `{"error":{"message":"registry.ollama.ai/library/gemma:latest does not support tools","type":"api_error","param":null,"code":null}}`), len(r.Tools) > 0
	}},
	{Name: "no_tools_zh", Refuse: func(_ string, r Request) (Reply, bool) {
		return refuse(http.StatusBadRequest, `{"code":20037,"message":"该模型不支持工具调用","data":null}`), len(r.Tools) > 0
	}},
	{Name: "no_tools_404", Refuse: func(_ string, r Request) (Reply, bool) {
		return refuse(http.StatusNotFound, `{"error":{"message":"No endpoints found that support tool use. Try disabling \"memory_save\".","code":404}}`), len(r.Tools) > 0
	}},
	{Name: "plain_schemas", Refuse: func(_ string, r Request) (Reply, bool) {
		return badForm(`Invalid JSON payload received. Unknown name "maxItems" at 'tools[0].function.parameters.properties[0]': Cannot find field.`), strings.Contains(string(r.Raw["tools"]), `"maxItems"`)
	}},
	{Name: "max_output", Example: "8192", Refuse: func(most string, r Request) (Reply, bool) {
		return badForm("Invalid max_tokens value, the valid range of max_tokens is [1, " + most + "]"), outputOf(r) > intOf(most)
	}},
	{Name: "max_output_zh", Example: "8192", Refuse: func(most string, r Request) (Reply, bool) {
		return badForm("max_tokens 超出范围，最大为 " + most), outputOf(r) > intOf(most)
	}},
	{Name: "max_output_silent", Example: "8192", Refuse: func(most string, r Request) (Reply, bool) {
		return badForm("max_tokens is too large"), outputOf(r) > intOf(most)
	}},
	{Name: "min_output", Example: "16", Refuse: func(least string, r Request) (Reply, bool) {
		return badForm("Invalid 'max_output_tokens': integer below minimum value. Expected a value >= " + least + ", but got " + strconv.Itoa(outputOf(r)) + " instead."), tooShort(least, r)
	}},
	// A model that thinks: its thoughts do not fit into the limit.
	{Name: "min_output_thoughts", Example: "256", Refuse: func(least string, r Request) (Reply, bool) {
		return badForm("Could not finish the message because max_tokens or model output limit was reached. Please try again with higher max_tokens."), tooShort(least, r)
	}},
	{Name: "min_output_silent", Example: "16", Refuse: func(least string, r Request) (Reply, bool) {
		return badForm("invalid request"), tooShort(least, r)
	}},
	{Name: "completion_tokens", Refuse: refuseField("max_tokens", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")},
	{Name: "unique_ids", Refuse: func(_ string, r Request) (Reply, bool) {
		seen := map[string]bool{}
		for _, c := range callsOf(r) {
			if seen[c.ID] {
				return badForm("duplicate tool_call_id " + c.ID), true
			}
			seen[c.ID] = true
		}
		return Reply{}, false
	}},
	{Name: "id_format", Refuse: func(_ string, r Request) (Reply, bool) {
		for _, c := range callsOf(r) {
			if !nineLetters.MatchString(c.ID) {
				return refuse(http.StatusBadRequest, `{"object":"error","message":"Tool call id was x but must be a-z, A-Z, 0-9, with a length of 9.","type":"invalid_function_call","param":null,"code":"3280"}`), true
			}
		}
		return Reply{}, false
	}},
	{Name: "no_name_field", Refuse: anyMessage("'messages.%d' : for 'role:user' the following must be satisfied[('messages.1' : property 'name' is unsupported)]", func(m map[string]json.RawMessage) bool { return m["name"] != nil })},
	{Name: "no_stream_options", Refuse: refuseField("stream_options", "Extra inputs are not permitted, field: 'stream_options'")},
	{Name: "no_stream", Refuse: func(_ string, r Request) (Reply, bool) {
		return badForm("streaming is not supported by this deployment"), r.Stream
	}},
	{Name: "only_user_last", Refuse: func(_ string, r Request) (Reply, bool) {
		return badForm("Expected last role User but got " + r.Last().Role), r.Last().Role != "user"
	}},
	{Name: "fixed_temperature", Refuse: refuseField("temperature", "invalid temperature: only 1 is allowed for this model")},
	{Name: "strict_fields", Refuse: refuseStrangers},
	{Name: "wants_reasoning", Refuse: anyMessage("reasoning_content is missing in assistant message at index %d", func(m map[string]json.RawMessage) bool {
		return isRole("assistant")(m) && m["reasoning_content"] == nil
	})},
})

var nineLetters = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

func refuseSameRoles(_ string, r Request) (Reply, bool) {
	for i := 1; i < len(r.Messages); i++ {
		if r.Messages[i].Role == r.Messages[i-1].Role && r.Messages[i].Role != "tool" {
			return refuse(http.StatusBadRequest, `{"error":{"message":"Conversation roles must alternate user/assistant/user/assistant/...","type":"BadRequestError","code":400}}`), true
		}
	}
	return Reply{}, false
}

// refuseStrangers refuses the fields that OpenAI's first API did not have, as FastAPI servers do, with what was sent in them.
func refuseStrangers(_ string, r Request) (Reply, bool) {
	known := []string{"model", "messages", "tools", "tool_choice", "max_tokens", "temperature", "stream", "response_format", "top_p", "stop"}
	var detail []object
	add := func(loc []any, input any) {
		detail = append(detail, object{"type": "extra_forbidden", "loc": loc, "msg": "Extra inputs are not permitted", "input": input})
	}
	for field, v := range r.Raw {
		if !slices.Contains(known, field) {
			add([]any{"body", field}, v)
		}
	}
	for i, m := range rawMessages(r) {
		for field, v := range m {
			if !slices.Contains([]string{"role", "content", "tool_calls", "tool_call_id"}, field) {
				add([]any{"body", "messages", i, "typed-dict", field}, v)
			}
		}
	}
	b, _ := json.Marshal(object{"detail": detail[:min(1, len(detail))]})
	return refuse(http.StatusUnprocessableEntity, string(b)), len(detail) > 0
}

func refuseField(field, message string) func(string, Request) (Reply, bool) {
	return func(_ string, r Request) (Reply, bool) { return badForm(message), r.Raw[field] != nil }
}

// anyMessage refuses a request with a message that bad finds. The text has a verb for its index.
func anyMessage(text string, bad func(map[string]json.RawMessage) bool) func(string, Request) (Reply, bool) {
	return func(_ string, r Request) (Reply, bool) {
		for i, m := range rawMessages(r) {
			if bad(m) {
				return badForm(fmt.Sprintf(text, i)), true
			}
		}
		return Reply{}, false
	}
}

func isRole(role string) func(map[string]json.RawMessage) bool {
	return func(m map[string]json.RawMessage) bool { return string(m["role"]) == strconv.Quote(role) }
}

func rawMessages(r Request) (all []map[string]json.RawMessage) {
	_ = json.Unmarshal(r.Raw["messages"], &all) // the server has parsed them
	return all
}

func callsOf(r Request) (all []Call) {
	for _, m := range r.Messages {
		all = append(all, m.ToolCalls...)
	}
	return all
}

func tooShort(least string, r Request) bool { return outputOf(r) > 0 && outputOf(r) < intOf(least) }

func outputOf(r Request) int {
	return max(intOf(string(r.Raw["max_tokens"])), intOf(string(r.Raw["max_completion_tokens"])))
}

func intOf(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

func badForm(message string) Reply {
	b, _ := json.Marshal(object{"error": object{"message": message, "type": "invalid_request_error", "param": nil, "code": nil}})
	return refuse(http.StatusBadRequest, string(b))
}

func refuse(status int, body string) Reply { return Error(status, "", body) }
