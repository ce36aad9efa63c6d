package openaitest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// textForms are the forms in which models write calls.
var textForms = map[string]string{
	"hermes":   "<tool_call>\n{\"name\":\"NAME\",\"arguments\":ARGS}\n</tool_call>",
	"coder":    "<tool_call>\n<function=NAME>\nTAGS</function>\n</tool_call>",
	"mistral":  "[TOOL_CALLS] [{\"name\":\"NAME\",\"arguments\":ARGS}]",
	"deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\nARGS\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
	"kimi":     "<|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>ARGS<|tool_call_end|><|tool_calls_section_end|>",
	"llama":    "<|python_tag|>{\"name\":\"NAME\",\"parameters\":ARGS}",
	"granite":  "<|tool_call|>[{\"name\":\"NAME\",\"arguments\":ARGS}]",
	"json":     "```json\n{\"name\":\"NAME\",\"arguments\":ARGS}\n```",
	"harmony":  "<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>ARGS<|call|>",
	"cut":      "<tool_call>\n{\"name\":\"NAME\",\"arguments\":{\"query",
}

func writeCalls(form string, _ Request, a Reply) Reply {
	text := []string{}
	if a.text != "" {
		text = append(text, a.text)
	} else if len(a.calls) > 0 && form != "json" {
		text = append(text, "好的。")
	}
	for _, c := range a.calls {
		text = append(text, strings.NewReplacer("NAME", c.Name, "ARGS", c.Arguments, "TAGS", asTags(c.Arguments)).Replace(textForms[form]))
	}
	a.calls = nil
	return a.WithContent(strings.Join(text, "\n"))
}

// Thought is the reasoning that the behaviour harmony writes into texts.
const Thought = "先想一想，这一句是模型的想法。"

// harmonyForms are the parts of gpt-oss's template that servers leave around reasoning and an answer.
var harmonyForms = map[string]string{
	"full":     "<|channel|>analysis<|message|>THOUGHT<|end|><|start|>assistant<|channel|>final<|message|>TEXT<|return|>",
	"headless": "THOUGHT<|end|><|start|>assistant<|channel|>final<|message|>TEXT",
	"bare":     "analysisTHOUGHTassistantfinalTEXT",
}

func writeChannels(form string, r Request, a Reply) Reply {
	if len(a.calls) > 0 {
		return writeCalls("harmony", r, a)
	}
	return a.WithContent(strings.NewReplacer("THOUGHT", Thought, "TEXT", a.text).Replace(harmonyForms[form]))
}

// asTags writes arguments as Qwen's coders do.
func asTags(arguments string) string {
	var args map[string]json.RawMessage
	_ = json.Unmarshal([]byte(arguments), &args)
	var b strings.Builder
	for name, raw := range args {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			s = string(raw)
		}
		fmt.Fprintf(&b, "<parameter=%s>\n%s\n</parameter>\n", name, s)
	}
	return b.String()
}

// lastSpeaker is the name before the last message of a person.
func lastSpeaker(r Request) string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if name, _, ok := strings.Cut(r.Messages[i].Content, ": "); ok && r.Messages[i].Role == "user" && strings.HasSuffix(name, ")") {
			return name
		}
	}
	return "张三(u2)"
}

// ReplyToTranscript is an answer in place of a summary.
const ReplyToTranscript = "好的，没问题！预算评审会我来跟进，会议室已经订好，材料也会提前发给大家，有新的进展我会马上同步。\n\n请问接下来需要我帮大家安排预算评审会的议程吗？"

func replyToTranscript(arg string, r Request, a Reply) Reply {
	if r.Kind != Summary || arg != "always" && strings.Contains(r.Last().Content, "不要回复任何人") {
		return a
	}
	return a.WithContent(ReplyToTranscript)
}
