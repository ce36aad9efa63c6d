package openai

import (
	"fmt"
	"strings"

	"ebb/sessions/llm"
)

// ends translates the reasons that endpoints with OpenAI's API name for a whole answer, in lower case. Any other reason,
// such as network_error or insufficient_system_resource, says that the answer broke off.
var ends = map[string]llm.Finish{
	"stop": llm.FinishStop, "stopped": llm.FinishStop, "eos": llm.FinishStop, "eos_token": llm.FinishStop, "end": llm.FinishStop,
	"end_turn": llm.FinishStop, "stop_sequence": llm.FinishStop, "stop_word": llm.FinishStop, "complete": llm.FinishStop, "completed": llm.FinishStop,
	"finish": llm.FinishStop, "finished": llm.FinishStop, "normal": llm.FinishStop, "done": llm.FinishStop, "success": llm.FinishStop,
	"finish_reason_stop": llm.FinishStop, "finish_reason_unspecified": llm.FinishStop,

	"length": llm.FinishLength, "max_tokens": llm.FinishLength, "max_length": llm.FinishLength, "max_output_tokens": llm.FinishLength,
	"model_length": llm.FinishLength, "model_context_window_exceeded": llm.FinishLength, "token_limit": llm.FinishLength,
	"finish_reason_max_tokens": llm.FinishLength, "finish_reason_length": llm.FinishLength,

	"tool_calls": llm.FinishTools, "tool_call": llm.FinishTools, "tool_use": llm.FinishTools, "function_call": llm.FinishTools, "function_calls": llm.FinishTools,

	"content_filter": llm.FinishFilter, "content_filtered": llm.FinishFilter, "content-filter": llm.FinishFilter, "content_policy_violation": llm.FinishFilter,
	"refusal": llm.FinishFilter, "safety": llm.FinishFilter, "sensitive": llm.FinishFilter, "blocked": llm.FinishFilter, "blocklist": llm.FinishFilter,
	"prohibited_content": llm.FinishFilter, "recitation": llm.FinishFilter, "spii": llm.FinishFilter, "risk_control": llm.FinishFilter,
	"guardrail_intervened": llm.FinishFilter, "data_inspection_failed": llm.FinishFilter,
}

// isReason is false for the words of providers that send a reason with each chunk.
func isReason(finish string) bool {
	switch strings.ToLower(strings.TrimSpace(finish)) {
	case "", "null", "none":
		return false
	}
	return true
}

// endOf reports false for a reason that is no end. No reason at all is an end, since the provider closed the answer.
func endOf(finish string) (llm.Finish, bool) {
	if !isReason(finish) {
		return llm.FinishStop, true
	}
	end, ok := ends[strings.ToLower(strings.TrimSpace(finish))]
	return end, ok
}

// unfinished is the error of an answer whose reason is no end.
func unfinished(finish string) error {
	if !codeLike.MatchString(finish) {
		finish = "unknown"
	}
	return fmt.Errorf("the answer ended with the reason %s: %w", finish, errBroken)
}
