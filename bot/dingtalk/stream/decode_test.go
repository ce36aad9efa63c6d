package stream

import (
	"fmt"
	"strings"
	"testing"

	"github.com/open-dingtalk/dingtalk-stream-sdk-go/payload"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/sessions"
)

func TestDecodeReadsEveryVariantOfTheSimulator(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, dingtalktest.Fast())
	g := start(t, s, nil)
	for name, v := range dingtalktest.Variants() {
		v.MsgID = "variant " + name
		s.Say(v)
		m := g.Next(t)
		if string(m.ID) != v.MsgID {
			t.Fatalf("%s: got message %q", name, m.ID)
		}
		if m.Text == "" && m.Quote == nil && !m.OverQuota && strings.TrimSpace(v.Text) != "" {
			t.Errorf("%s: nothing of %q was read", name, v.Text)
		}
		if strings.Contains(fmt.Sprint(m.Text), "map[") {
			t.Errorf("%s: the text is Go's own notation: %q", name, m.Text)
		}
	}
}

// A panic in the decoder refuses the frame, frees what it held, and ends nothing.
func TestPanicOfDecoderRefusesTheFrame(t *testing.T) {
	t.Parallel()
	tr := newStream("http://127.0.0.1:1")
	in := tr.receiver(testContext(t), func(string, sessions.RobotCode) (sessions.Message, error) { panic("secret") }, nil).intake
	for range 2 * maxHeldFrames {
		ack := in.takeFrame(&payload.DataFrame{Data: "{}"}, 2)()
		if ack.Code != 500 || strings.Contains(ack.Message+ack.Data, "secret") {
			t.Fatalf("the ack is %+v", ack)
		}
	}
	if n := tr.Stats().Unreadable; n != 2*maxHeldFrames {
		t.Errorf("%d frames counted as unreadable", n)
	}
}

func TestFramesHaveValuesOfAnyType(t *testing.T) {
	t.Parallel()
	const topic = `"topic":"/v1.0/im/bot/messages/get"`
	for frame, want := range map[string][3]string{
		`{"type":"CALLBACK","headers":{"messageId":"f1","time":"1",` + topic + `},"data":"{}"}`:                 {"f1", "1", "{}"},
		`{"type":"CALLBACK","headers":{"messageId":77,"time":1767168000123,` + topic + `},"data":"{}"}`:         {"77", "1767168000123", "{}"},
		`{"type":"CALLBACK","headers":{"messageId":"f1","time":null,"x":{"a":[1]},` + topic + `},"data":"{}"}`:  {"f1", "", "{}"},
		`{"specVersion":1,"time":"x","type":"CALLBACK","headers":{"messageId":"f1",` + topic + `},"data":"{}"}`: {"f1", "", "{}"},
		`{"type":"CALLBACK","headers":{"messageId":"f1",` + topic + `},"data":{"msgId":"m1","text":{"a":"b"}}}`: {"f1", "", `{"msgId":"m1","text":{"a":"b"}}`},
		`{"type":"CALLBACK","header":{"messageId":"f1",` + topic + `},"data":"{}"}`:                             {"f1", "", "{}"},
		`{"type":"CALLBACK","headers":{"messageId":"f1",` + topic + `}}`:                                        {"f1", "", ""},
		`{"type":"CALLBACK","headers":{"messageId":"f1",` + topic + `},"data":"\u4f60\ud83d\ude00","data2":5}`:  {"f1", "", "你😀"},
	} {
		f, err := decodeFrame([]byte(frame))
		if err != nil {
			t.Errorf("%s: %v", frame, err)
			continue
		}
		got := [3]string{f.GetMessageId(), f.GetHeader("time"), f.Data}
		if got != want || f.Type != callback || f.GetTopic() != dingtalktest.TopicBot {
			t.Errorf("%s: got %q of %s to %s, want %q", frame, got, f.Type, f.GetTopic(), want)
		}
	}
	for _, frame := range []string{"", "null", "[]", "5", "{", "{}", `{"headers":null}`, `{"headers":"x"}`, `{"headers":[]}`, `{"headers":{}}x`} {
		if f, err := decodeFrame([]byte(frame)); err == nil {
			t.Errorf("%s: read as %+v", frame, f)
		}
	}
}
