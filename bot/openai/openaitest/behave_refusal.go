package openaitest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// refusalBehaviours are providers that refuse contents, accounts or sizes.
var refusalBehaviours = []Behaviour{
	{Name: "refuses_word", Example: "敏感词甲", Refuse: refuseWord},
	{Name: "repeats_request", Example: "500", Refuse: repeatRequest},
	// The account is empty, which the provider sends as too many requests.
	{Name: "money", Refuse: always(http.StatusTooManyRequests, `{"error":{"code":"1113","message":"余额不足或无可用资源包,请充值。"}}`)},
	{Name: "busy_zh", Refuse: always(http.StatusBadRequest, `{"error":{"code":"1305","message":"该模型当前访问量过大，请您稍后再试"}}`)},
	// Requests of more bytes than the argument do not fit into the window. The wording changes with each request.
	{Name: "overflow_wordings", Example: "60000", Refuse: refuseSize},
	// The same, without a reason.
	{Name: "overflow_unknown", Example: "60000", Refuse: func(most string, r Request) (Reply, bool) {
		return refuse(http.StatusBadRequest, `{"error":{"code":"E4001","message":"bad request"}}`), len(r.Text()) > intOf(most)
	}},
	// The endpoint takes a number of texts at a time for embeddings, and names it.
	{Name: "embed_limit", Example: "10", RefuseEmbed: func(most string, r EmbedRequest) (Reply, bool) {
		return refuse(http.StatusBadRequest, `{"error":{"message":"batch size is invalid, it should not be larger than `+most+`.: input.contents"}}`), len(r.Texts) > intOf(most)
	}},
	{Name: "embed_denied", RefuseEmbed: func(string, EmbedRequest) (Reply, bool) {
		return refuse(http.StatusUnauthorized, `{"error":{"message":"Incorrect API key provided: sk-provider-secret-text","type":"invalid_request_error","code":"invalid_api_key"}}`), true
	}},
	// The same without the number.
	{Name: "embed_limit_silent", Example: "10", RefuseEmbed: func(most string, r EmbedRequest) (Reply, bool) {
		return refuse(http.StatusBadRequest, `{"error":{"message":"too many inputs"}}`), len(r.Texts) > intOf(most)
	}},
}

// overflows are real wordings of a request that is too large.
var overflows = []string{
	`{"code":20015,"message":"length of prompt_tokens (68957) must be less than max_seq_len (65536).","data":null}`,
	`{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 136973 tokens."}`,
	`{"error":{"code":"1261","message":"Prompt 超长"}}`,
	`{"error":{"message":"request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error"}}`,
	`{"error":{"code":"InvalidParameter","message":"Total tokens of image and text exceed max message tokens."}}`,
}

func refuseSize(most string, r Request) (Reply, bool) {
	return refuse(http.StatusBadRequest, overflows[r.N%len(overflows)]), len(r.Text()) > intOf(most)
}

func always(status int, body string) func(string, Request) (Reply, bool) {
	return func(string, Request) (Reply, bool) { return refuse(status, body), true }
}

// refuseWord reads all words of a request, as inspections do: contents, and the arguments of calls.
func refuseWord(word string, r Request) (Reply, bool) {
	if !strings.Contains(r.Text()+r.Arguments(), word) {
		return Reply{}, false
	}
	return refuse(http.StatusBadRequest, `{"error":{"code":"data_inspection_failed","message":"Input data may contain inappropriate content.","type":"data_inspection_failed"}}`), true
}

// repeatRequest answers each request with the status, and with the whole request in the error's text.
func repeatRequest(status string, r Request) (Reply, bool) {
	code, err := strconv.Atoi(status)
	if err != nil {
		panic("openaitest: repeats_request takes a status")
	}
	text, _ := json.Marshal("cannot process: " + r.Text())
	return refuse(code, `{"error":{"code":"upstream_error","message":`+string(text)+`}}`), true
}
