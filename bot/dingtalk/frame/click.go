package frame

import (
	"strings"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/value"
	"ebb/sessions"
)

// DecodeClick reads the press of a button. The action's place differs between releases of DingTalk.
func DecodeClick(data string) (c chat.Click, err error) {
	o, err := value.Parse(data)
	if err != nil {
		return chat.Click{}, err
	}
	private := o.Obj("content").Obj("cardPrivateData")
	c = chat.Click{Card: value.Clip(o.Str("outTrackId"), 200), By: sessions.UserID(o.Str("userId")), Organization: boundedID(o.Str("corpId"))}
	for _, v := range private.List("actionIds") {
		if id := value.String(v); id != "" && c.Action == "" {
			c.Action = sessions.Button(strings.ToLower(value.Clip(id, 50)))
		}
	}
	if c.Action == "" {
		c.Action = sessions.Button(strings.ToLower(value.Clip(private.Obj("params").Str("action"), 50)))
	}
	return c, nil
}
