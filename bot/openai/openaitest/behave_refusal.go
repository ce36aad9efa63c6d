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
}

func refuseWord(word string, r Request) (Reply, bool) {
	if !strings.Contains(r.Text(), word) {
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
