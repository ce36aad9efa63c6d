package openai

import (
	"slices"
	"strings"
	"testing"

	"ebb/bot/openai/openaitest"
	"ebb/sessions/llm"
)

// realErrors are bodies that providers send, with the class that leads to the right remedy.
var realErrors = []struct {
	status int
	body   string
	want   llm.ErrorClass
}{
	// The account has no money: OpenAI, Zhipu, MiniMax, DashScope, Moonshot, DeepSeek, SiliconFlow, Ark, OpenRouter, xAI, proxies.
	{429, `{"error":{"code":"1113","message":"余额不足或无可用资源包,请充值。"}}`, llm.Unpaid},
	{429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, llm.Unpaid},
	{500, `{"type":"error","error":{"type":"api_error","message":"insufficient balance (1008)"}}`, llm.Unpaid},
	{200, `{"id":"x","choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`, llm.Unpaid},
	{400, `{"error":{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing.","type":"Arrearage"}}`, llm.Unpaid},
	{403, `{"code":"AllocationQuota.FreeTierOnly","message":"The free tier of the model has been exhausted. If you wish to continue access the model on a paid basis, please disable the \"use free tier only\" mode"}`, llm.Unpaid},
	{429, `{"error":{"message":"Your account org-x <ak-y> is suspended, please check your plan and billing details","type":"exceeded_current_quota_error"}}`, llm.Unpaid},
	{402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`, llm.Unpaid},
	{403, `{"code":30001,"message":"Sorry, your account balance is insufficient","data":null}`, llm.Unpaid},
	{403, `{"error":{"code":"AccountOverdueError","message":"The request failed because your account has an overdue balance.","param":"","type":"Forbidden"}}`, llm.Unpaid},
	{429, `{"error":{"code":"SetLimitExceeded","message":"Your account 21 has reached the set inference limit for the doubao-pro model, and the model service has been paused.","type":"TooManyRequests"}}`, llm.Unpaid},
	{402, `{"error":{"message":"Insufficient credits. Add more using https://openrouter.ai/credits","code":402}}`, llm.Unpaid},
	{200, `{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 4096 tokens, but can only afford 1000","code":402}}`, llm.Unpaid},
	{429, `{"code":"Some resource has been exhausted","error":"Your team has either used all available credits or reached its monthly spending limit."}`, llm.Unpaid},
	{400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, llm.Unpaid},
	{403, `{"error":{"message":"用户额度不足, 剩余额度: ＄-0.000002 (request id: 2026)","type":"new_api_error","code":"insufficient_user_quota"}}`, llm.Unpaid},
	{403, `{"error":{"message":"该令牌额度已用尽 TokenStatusExhausted","type":"new_api_error"}}`, llm.Unpaid},
	{412, `{"error":{"message":"Account x is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices."}}`, llm.Unpaid},
	{429, `{"error":{"code":"1308","message":"已达到 5 小时的使用上限。您的限额将在 2026-01-02 03:04:05 重置。"}}`, llm.Unpaid},

	// The content is refused.
	{500, `{"error":{"code":"data_inspection_failed","message":"Input data may contain inappropriate content.","type":"data_inspection_failed"}}`, llm.Refused},
	{400, `{"error":{"message":"<400> InternalError.Algo.DataInspectionFailed: Input text data may contain inappropriate content.","type":"data_inspection_failed"}}`, llm.Refused},
	{400, `{"error":{"code":"1301","message":"系统检测到输入或生成内容可能包含不安全或敏感内容，请您避免输入易产生敏感内容的提示语，感谢您的配合。"}}`, llm.Refused},
	{400, `{"error":{"message":"Content Exists Risk","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, llm.Refused},
	{400, `{"error":{"message":"The request was rejected because it was considered high risk","type":"content_filter"}}`, llm.Refused},
	{200, `{"base_resp":{"status_code":1026,"status_msg":"input new_sensitive"}}`, llm.Refused},
	{400, `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, llm.Refused},
	{403, `{"error":{"message":"openai/x requires moderation on OpenInference. Your input was flagged for \"violence\".","code":403,"metadata":{"reasons":["violence"]}}}`, llm.Refused},
	{400, `{"error":{"code":"InputTextSensitiveContentDetected","message":"The request failed because the input text may contain sensitive information."}}`, llm.Refused},
	{200, `{"code":10013,"message":"输入内容审核不通过，涉嫌违规，请重新调整输入内容","sid":"x"}`, llm.Refused},
	{400, `{"error":{"message":"抱歉，您的请求包含不安全内容，已被系统拦截。"}}`, llm.Refused},

	// The request is larger than the window.
	{400, `{"code":20015,"message":"length of prompt_tokens (68957) must be less than max_seq_len (65536).","data":null}`, llm.Overflow},
	{400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 136973 tokens."}`, llm.Overflow},
	{400, `{"error":{"code":"1261","message":"Prompt 超长"}}`, llm.Overflow},
	{400, `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}]`, llm.Overflow},
	{400, `{"error":{"message":"Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)","type":"invalid_request_error"}}`, llm.Overflow},
	{400, `{"error":{"code":400,"message":"request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error"}}`, llm.Overflow},
	{500, `{"error":{"code":500,"message":"the request exceeds the available context size","type":"server_error"}}`, llm.Overflow},
	{422, "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`\",\"error_type\":\"validation\"}", llm.Overflow},
	{400, `{"object":"error","message":"The input (40000 tokens) is longer than the model's context length (32768 tokens).","type":"BadRequestError","param":null,"code":400}`, llm.Overflow},
	{400, `{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, llm.Overflow},
	{400, `{"error":{"code":"InvalidParameter","message":"Total tokens of image and text exceed max message tokens."}}`, llm.Overflow},
	{429, `{"error":{"message":"Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 31234.","type":"tokens","code":"rate_limit_exceeded"}}`, llm.Overflow},
	{400, `{"error":{"message":"输入内容超过模型最大长度限制，请减少输入","code":"invalid_parameter_error"}}`, llm.Overflow},
	{400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"This endpoint's maximum context length is 32768 tokens.\"}}","provider_name":"X"}}}`, llm.Overflow},

	// Too many requests: another try may help.
	{429, `{"error":{"code":"1302","message":"您的账户已达到速率限制，请您控制请求频率"}}`, llm.Busy},
	{429, `{"error":{"code":"1305","message":"该API访问量过大，请您稍后再试"}}`, llm.Busy},
	{400, `{"error":{"code":"1302","message":"您当前使用该API的并发数过高，请降低并发"}}`, llm.Busy},
	{429, `{"error":{"code":"Throttling.AllocationQuota","message":"Allocated quota exceeded, please increase your quota limit."}}`, llm.Busy},
	{429, `{"message":"Too many tokens, please wait before trying again."}`, llm.Busy},
	{429, `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. * Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 15\nPlease retry in 34.07s.","status":"RESOURCE_EXHAUSTED"}}]`, llm.Busy},
	{429, `{"error":{"message":"Your account org-x request reached organization max RPM: 3, please try again after 1 seconds","type":"rate_limit_reached_error"}}`, llm.Busy},
	{429, `{"error":{"message":"Rate limit reached for gpt-4o on requests per min (RPM): Limit 3, Used 3. Visit https://platform.openai.com/account/rate-limits to learn more. You can increase your rate limit by adding a payment method to your account at https://platform.openai.com/account/billing.","code":"rate_limit_exceeded"}}`, llm.Busy},
	{503, `{"code":50505,"message":"Model service overloaded. Please try again later.","data":null}`, llm.Busy},
	{200, `{"base_resp":{"status_code":1002,"status_msg":"rate limit exceeded(RPM)"}}`, llm.Busy},
	{500, `{"error":{"message":"Internal server error","type":"server_error"}}`, llm.Busy},
	{502, `<html><body>Bad gateway. Your account balance is insufficient</body></html>`, llm.Busy},
	{504, `{"message":"The upstream server is timing out"}`, llm.Timeout},

	// The key or the permission.
	{401, `{"error":{"code":"1000","message":"身份验证失败。"}}`, llm.Denied},
	{400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, llm.Denied},
	{400, `[{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}]`, llm.Denied},
	{200, `{"base_resp":{"status_code":1004,"status_msg":"login fail: Please carry the API secret key in the 'Authorization' field of the request header"}}`, llm.Denied},
	{403, `{"error":{"code":"access_denied","message":"Model access denied."}}`, llm.Denied},

	// The model or the address.
	{400, `{"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, llm.Missing},
	{400, `{"error":{"code":"1211","message":"模型不存在，请检查模型代码。"}}`, llm.Missing},
	{400, `{"error":{"message":"x/y is not a valid model ID","code":400}}`, llm.Missing},
	{400, `{"code":20012,"message":"Model does not exist. Please check it carefully.","data":null}`, llm.Missing},
	{404, `{"error":{"message":"model \"llama9\" not found, try pulling it first","type":"api_error"}}`, llm.Missing},
	{400, "{\"error\":{\"message\":\"The model `llama-3` has been decommissioned and is no longer supported.\",\"code\":\"model_decommissioned\"}}", llm.Missing},
	{400, `{"error":{"message":"当前分组 default 下对于模型 gpt-9 无可用渠道","type":"new_api_error"}}`, llm.Missing},
	{500, `{"error":{"message":"Incorrect API key provided"}}`, llm.Busy},

	// A form that the provider does not take.
	{400, `{"error":{"code":"1214","message":"messages 参数非法。请检查文档。"}}`, llm.Malformed},
	{400, `{"error":{"message":"Invalid 'messages[3].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 60 instead.","type":"invalid_request_error","param":"messages[3].tool_calls[0].id","code":"string_above_max_length"}}`, llm.Malformed},
	{422, `{"detail":[{"type":"extra_forbidden","loc":["body","messages",1,"name"],"msg":"Extra inputs are not permitted","input":"余额不足"}]}`, llm.Malformed},
	{400, `{"object":"error","message":"Conversation roles must alternate user/assistant/user/assistant/...","type":"BadRequestError","param":null,"code":400}`, llm.Malformed},
	{400, `{"error":{"message":"Invalid max_tokens value, the valid range of max_tokens is [1, 8192]","type":"invalid_request_error"}}`, llm.Malformed},
}

func TestErrorsAreClassedByTheirWords(t *testing.T) {
	t.Parallel()
	for _, tt := range realErrors {
		status := tt.status
		if status == 200 {
			status = 0
		}
		if e := parseFailure(status, []byte(tt.body)); e.classOf() != tt.want {
			t.Errorf("%d %s: got class %s, want %s (codes %q, message %q)", tt.status, tt.body, e.classOf(), tt.want, e.codes, e.message)
		}
	}
}

// An error of a class without remedy is asked for once, also in a stream that begins well, and in a whole answer.
func TestErrorsReachTheCallerWithTheirClass(t *testing.T) {
	t.Parallel()
	for _, tt := range realErrors {
		if tt.want == llm.Busy || tt.want == llm.Timeout || tt.want == llm.Malformed {
			continue
		}
		s := openaitest.NewServer(t, openaitest.Raw(tt.status, "application/json", tt.body))
		_, err := clientOf(t, 3, s).Generate(t.Context(), ask("你好"))
		if class(t, err, tt.want); len(s.Requests()) != 1 {
			t.Errorf("%s: %d requests", tt.body, len(s.Requests()))
		}
	}
}

// A provider that repeats the request does not repeat it into the class.
func TestWordsOfPeopleAreNoCause(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"账户余额不足怎么办", "what is data_inspection_failed", "the prompt is too long"} {
		s := openaitest.New(openaitest.Options{Behaviours: []string{"repeats_request:400"}})
		t.Cleanup(s.Close)
		_, err := clientOf(t, 0, s).Generate(t.Context(), ask(text))
		class(t, err, llm.Malformed)
	}
}

func FuzzErrorBodies(f *testing.F) {
	for _, tt := range realErrors {
		f.Add(tt.status, []byte(tt.body))
	}
	f.Add(400, []byte(`{"error":{"error":{"error":{"error":{"error":{"error":{"error":{"message":"deep"}}}}}}}}`))
	f.Add(500, []byte(`{"code":1e999,"message":["`+testKey+`",null,{"loc":[{}]}]}`))
	known := []llm.ErrorClass{
		llm.Busy, llm.Timeout, llm.Broken, llm.Unreachable, llm.Missing, llm.Denied, llm.Unpaid, llm.Overflow, llm.Refused, llm.Malformed,
	}
	redact := redactor([]string{testKey})
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 300 || status > 599 {
			status = 300 + (status%300+300)%300
		}
		err := failureOf(t.Context(), "a", redact, &exchange{status: status, body: body}, errEmpty)
		if !slices.Contains(known, err.Class) || err.Class == "" {
			t.Errorf("class %q", err.Class)
		}
		if text := err.Error() + err.Said; strings.Contains(text, testKey) || len(text) > 10<<10 {
			t.Errorf("the error says %q", text)
		}
	})
}
