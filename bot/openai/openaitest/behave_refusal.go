package openaitest

import (
	"net/http"
	"strings"
)

// refusalBehaviours are providers that refuse contents, accounts or sizes.
var refusalBehaviours = []Behaviour{
	{Name: "refuses_word", Example: "敏感词甲", Refuse: refuseWord},
}

func refuseWord(word string, r Request) (Reply, bool) {
	if !strings.Contains(r.Text(), word) {
		return Reply{}, false
	}
	return refuse(http.StatusBadRequest, `{"error":{"code":"data_inspection_failed","message":"Input data may contain inappropriate content.","type":"data_inspection_failed"}}`), true
}
