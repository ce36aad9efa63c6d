package openaitest

import "net/http"

// formBehaviours are providers that accept requests in a certain form only.
var formBehaviours = []Behaviour{
	{Name: "alternating_roles", Refuse: refuseSameRoles},
}

func refuseSameRoles(_ string, r Request) (Reply, bool) {
	for i := 1; i < len(r.Messages); i++ {
		if r.Messages[i].Role == r.Messages[i-1].Role && r.Messages[i].Role != "tool" {
			return refuse(http.StatusBadRequest, `{"error":{"message":"Conversation roles must alternate user/assistant/user/assistant/...","type":"BadRequestError","code":400}}`), true
		}
	}
	return Reply{}, false
}

func refuse(status int, body string) Reply { return Error(status, "", body) }
