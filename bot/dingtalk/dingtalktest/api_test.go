package dingtalktest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
)

func token(t *testing.T, s *dingtalktest.Server) string {
	t.Helper()
	r := post(t, s.URL+"/v1.0/oauth2/accessToken", `{"appKey":"dingsimapp0001","appSecret":"sim-secret"}`)
	tok, ok := r["accessToken"].(string)
	if !ok || r["expireIn"] != 7200.0 {
		t.Fatalf("the token answer is %v", r)
	}
	return tok
}

func api(t *testing.T, s *dingtalktest.Server, tok, method, path, body string) (int, string) {
	t.Helper()
	return request(t, method, s.URL+path, body, map[string]string{"x-acs-dingtalk-access-token": tok})
}

func groupMessage(words string) string {
	return fmt.Sprintf(`{"robotCode":"dingsimapp0001","openConversationId":"cidRelease","msgKey":"sampleText","msgParam":"{\"content\":%s}"}`,
		strings.ReplaceAll(fmt.Sprintf("%q", words), `"`, `\"`))
}

const groupSend = "/v1.0/robot/groupMessages/send"

func TestTokensAreTheSameOnBothHostsAndWasteIsReported(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	tok := token(t, s)
	_, body := request(t, "GET", s.URL+"/gettoken?appkey=dingsimapp0001&appsecret=sim-secret", "", nil)
	if !strings.Contains(body, tok) || !strings.Contains(body, `"expires_in":7200`) {
		t.Errorf("gettoken answered %s", body)
	}
	waitViolation(t, s, dingtalktest.TokenWasted)
	for path, want := range map[string]string{
		"/gettoken?appkey=dingsimapp0001&appsecret=guess": `"errcode":40089`,
	} {
		if _, body := request(t, "GET", s.URL+path, "", nil); !strings.Contains(body, want) {
			t.Errorf("%s answered %s", path, body)
		}
	}
	status, body := request(t, "POST", s.URL+"/v1.0/oauth2/accessToken", `{"appKey":"dingsimapp0001","appSecret":"guess"}`, nil)
	if status != 400 || !strings.Contains(body, "invalidClientIdOrSecret") {
		t.Errorf("a wrong secret was answered with %d %s", status, body)
	}
}

func TestTokenFetchesWithAReasonAreNoWaste(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	s.AddGroup(dingtalktest.Group{ID: "cidRelease"})
	old := token(t, s)
	s.RevokeTokens()
	if status, body := api(t, s, old, "POST", groupSend, groupMessage("hi")); status != 400 || !strings.Contains(body, "InvalidAuthentication") {
		t.Errorf("a revoked token was answered with %d %s", status, body)
	}
	fresh := token(t, s)
	if fresh == old {
		t.Error("the revoked token was given out again")
	}
	s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteGroupSend, Action: dingtalktest.Do("invalid-token")})
	if status, _ := api(t, s, fresh, "POST", groupSend, groupMessage("hi")); status != 400 {
		t.Errorf("answered %d", status)
	}
	token(t, s)
	ticket(t, s) // a new process
	token(t, s)
	s.Advance(119 * time.Minute)
	token(t, s) // it is about to end
	noViolations(t, s)
}

func TestGroupSend(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 15001)
	good := groupMessage("hi")
	for name, tc := range map[string]struct {
		body, code, violation string
		status                int
	}{
		"good":               {good, "processQueryKey", "", 200},
		"no robot":           {strings.Replace(good, "dingsimapp0001", "", 1), "robotCode.empty", "", 400},
		"unknown robot":      {strings.Replace(good, "dingsimapp0001", "dingother", 1), "robotCode.notExsit", "", 400},
		"no conversation":    {strings.Replace(good, "cidRelease", "", 1), "miss.openConversationId", "", 400},
		"unknown":            {strings.Replace(good, "cidRelease", "cidNone", 1), "invalid.openConversationId", "", 400},
		"one-to-one":         {strings.Replace(good, "cidRelease", dingtalktest.DirectConversation("u1"), 1), "invalid.openConversationId", dingtalktest.ReplyWrongPlace, 400},
		"bot not in group":   {strings.Replace(good, "cidRelease", "cidForeign", 1), "bot.forbidden", dingtalktest.ReplyWrongPlace, 400},
		"disbanded":          {strings.Replace(good, "cidRelease", "cidGone", 1), "group.disbanded", "", 400},
		"unknown msgKey":     {strings.Replace(good, "sampleText", "sampleSong", 1), "msgKey.invalid", "", 400},
		"msgParam an object": {`{"robotCode":"dingsimapp0001","openConversationId":"cidRelease","msgKey":"sampleText","msgParam":{"content":"x"}}`, "invalidParameter", "", 400},
		"msgParam not JSON":  {`{"robotCode":"dingsimapp0001","openConversationId":"cidRelease","msgKey":"sampleText","msgParam":"hi"}`, "msgParam.invalid", "", 400},
		"msgParam too long":  {groupMessage(long), "msgParam.tooLong", "", 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := still()
			o.Groups = []dingtalktest.Group{{ID: "cidRelease"}, {ID: "cidForeign", Robots: []string{"another"}}, {ID: "cidGone", Disbanded: true}}
			s := dingtalktest.NewServer(t, o)
			s.Say(dingtalktest.Message{Direct: true, Sender: "u1"})
			status, body := api(t, s, token(t, s), "POST", groupSend, tc.body)
			if status != tc.status || !strings.Contains(body, tc.code) {
				t.Errorf("answered %d %s", status, body)
			}
			if n := len(s.Replies("")); (n == 1) != (tc.status == 200) {
				t.Errorf("%d replies", n)
			}
			if tc.violation == "" {
				noViolations(t, s)
			} else {
				waitViolation(t, s, tc.violation)
			}
		})
	}
}

func TestDirectSendReportsUnknownPeopleInsideA200(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	s.AddUser(dingtalktest.User{StaffID: "u1"})
	tok := token(t, s)
	send := func(ids string) (int, string) {
		return api(t, s, tok, "POST", "/v1.0/robot/oToMessages/batchSend",
			`{"robotCode":"dingsimapp0001","userIds":[`+ids+`],"msgKey":"sampleMarkdown","msgParam":"{\"title\":\"t\",\"text\":\"hi\"}"}`)
	}
	if status, body := send(`"u1","ghost"`); status != 200 || !strings.Contains(body, `"invalidStaffIdList":["ghost"]`) {
		t.Errorf("answered %d %s", status, body)
	}
	if r := s.Replies(dingtalktest.DirectConversation("u1")); len(r) != 1 || r[0].Text != "hi" || r[0].Via != "openapi" {
		t.Errorf("the private chat has %+v", r)
	}
	if status, body := send(""); status != 400 || !strings.Contains(body, "userIds.empty") {
		t.Errorf("no users: %d %s", status, body)
	}
	if status, body := send(strings.Repeat(`"u1",`, 20) + `"u1"`); status != 400 || !strings.Contains(body, "userIds.overMax") {
		t.Errorf("21 users: %d %s", status, body)
	}
}

func TestTheSameReplyByAnotherWayIsReported(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	url, _ := hook(t, s, dingtalktest.Text("hello").In("cidRelease"))
	post(t, url, text("answer"))
	tok := token(t, s)
	api(t, s, tok, "POST", groupSend, groupMessage("answer"))
	waitViolation(t, s, dingtalktest.ReplyTwice)
	s.Say(dingtalktest.Text("and again?").In("cidRelease"))
	api(t, s, tok, "POST", groupSend, groupMessage("answer"))
	if v := s.Violations(dingtalktest.ReplyTwice); len(v) != 1 {
		t.Errorf("a new message was said in between, and yet: %v", v)
	}
}

func TestRecall(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	s.AddGroup(dingtalktest.Group{ID: "cidRelease"})
	tok := token(t, s)
	_, body := api(t, s, tok, "POST", groupSend, groupMessage("oops"))
	var sent struct{ ProcessQueryKey string }
	if err := json.Unmarshal([]byte(body), &sent); err != nil {
		t.Fatal(err)
	}
	_, body = api(t, s, tok, "POST", "/v1.0/robot/groupMessages/recall",
		`{"robotCode":"dingsimapp0001","openConversationId":"cidRelease","processQueryKeys":["`+sent.ProcessQueryKey+`","none"]}`)
	if !strings.Contains(body, `"successResult":["`+sent.ProcessQueryKey) || !strings.Contains(body, `"none"`) {
		t.Errorf("recall answered %s", body)
	}
	if r := s.Replies("cidRelease"); len(r) != 1 || !r[0].Recalled {
		t.Errorf("the conversation has %+v", r)
	}
}

func TestAPIRateAndQuotas(t *testing.T) {
	t.Parallel()
	o := still()
	o.EnforceQuotas, o.APIQuota, o.StreamQuota = true, 22, 1
	o.Groups = []dingtalktest.Group{{ID: "cidRelease"}}
	s := dingtalktest.NewServer(t, o)
	tok := token(t, s)
	codes := map[int]int{}
	var last string
	for i := range 25 {
		status, body := api(t, s, tok, "POST", groupSend, groupMessage(fmt.Sprint(i)))
		codes[status]++
		last = body
	}
	if codes[200] != 20 || codes[403] != 5 || !strings.Contains(last, "QpsLimitForAppkeyAndApi") {
		t.Errorf("25 calls within a second: %v, last %s", codes, last)
	}
	s.Advance(time.Minute)
	for range 3 {
		_, last = api(t, s, tok, "POST", groupSend, groupMessage("x"))
	}
	if !strings.Contains(last, "ApiCountLimitForOrg") {
		t.Errorf("over the quota the answer is %s", last)
	}
	c := dial(t, s)
	s.Say(dingtalktest.Text("within"))
	s.Say(dingtalktest.Text("over"))
	if p := c.msg(); p["errorCode"] != nil {
		t.Errorf("within the quota: %v", p)
	}
	if p := c.msg(); p["errorCode"] != 20001.0 {
		t.Errorf("over the quota: %v", p)
	}
}

func TestFaultsOfTheAPI(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]struct {
		status   int
		contains string
	}{
		"invalid-token":   {400, "InvalidAuthentication"},
		"unauthorized":    {401, "InvalidAuthentication"},
		"token-invalid":   {200, `"errcode":40014`},
		"token-expired":   {200, `"errcode":42001`},
		"permission":      {403, "requiredScopes"},
		"qps":             {403, "QpsLimitForAppkeyAndApi"},
		"quota":           {403, "ApiCountLimitForOrg"},
		"ip-ban":          {200, `"status":1111`},
		"send-too-fast":   {400, "send.too.fast"},
		"group-disbanded": {400, "group.disbanded"},
		"param-too-long":  {400, "msgParam.tooLong"},
		"system-error":    {500, "system.error"},
		"flow-controlled": {200, `"flowControlledStaffIdList":["u0001"]`},
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			s := dingtalktest.NewServer(t, still())
			s.AddGroup(dingtalktest.Group{ID: "cidRelease"})
			tok := token(t, s)
			s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteGroupSend, Conversation: "cidRelease", Action: dingtalktest.Do(action)})
			if status, body := api(t, s, tok, "POST", groupSend, groupMessage("hi")); status != want.status || !strings.Contains(body, want.contains) {
				t.Errorf("answered %d %s", status, body)
			}
			if n := len(s.Replies("")); n != 0 {
				t.Errorf("%d replies", n)
			}
		})
	}
}

func TestFilesAndMedia(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	tok := token(t, s)
	code := s.AddFile("a.txt", "text/plain", []byte("words"))
	_, body := api(t, s, tok, "POST", "/v1.0/robot/messageFiles/download", `{"downloadCode":"`+code+`","robotCode":"dingsimapp0001"}`)
	var d struct{ DownloadURL string }
	if err := json.Unmarshal([]byte(body), &d); err != nil {
		t.Fatal(err)
	}
	if status, words := request(t, "GET", d.DownloadURL, "", nil); status != 200 || words != "words" {
		t.Errorf("the file is %d %q", status, words)
	}
	s.Advance(time.Hour)
	if status, _ := request(t, "GET", d.DownloadURL, "", nil); status != 403 {
		t.Errorf("an old download URL is answered with %d", status)
	}
	if status, body := api(t, s, tok, "POST", "/v1.0/robot/messageFiles/download", `{"downloadCode":"no","robotCode":"dingsimapp0001"}`); status != 400 || !strings.Contains(body, "downloadCode") {
		t.Errorf("a wrong code is answered with %d %s", status, body)
	}
	upload := func(kind, name string) map[string]any {
		var form bytes.Buffer
		w := multipart.NewWriter(&form)
		part := must[any](t)(w.CreateFormFile("media", name)).(interface{ Write([]byte) (int, error) })
		_, _ = part.Write([]byte("pixels"))
		w.Close()
		resp := must[*http.Response](t)(http.Post(s.URL+"/media/upload?type="+kind+"&access_token="+tok, w.FormDataContentType(), &form))
		defer resp.Body.Close()
		var out map[string]any
		if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	r := upload("image", "a.png")
	id, _ := r["media_id"].(string)
	if name, data, ok := s.Media(id); !ok || name != "a.png" || string(data) != "pixels" {
		t.Errorf("uploaded %v, kept %q %q %v", r, name, data, ok)
	}
	if r := upload("voice", "a.png"); r["errcode"] != 40005.0 {
		t.Errorf("a picture as voice is answered with %v", r)
	}
}

func TestEmotion(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	_, id := hook(t, s, dingtalktest.Text("hello").In("cidRelease"))
	tok := token(t, s)
	body := `{"robotCode":"dingsimapp0001","openMsgId":"` + id + `","openConversationId":"cidRelease","emotionType":2,"emotionName":"🤔思考中",
		"textEmotion":{"emotionId":"2659900","emotionName":"🤔思考中","text":"🤔思考中","backgroundId":"im_bg_1"}}`
	for _, part := range []string{`"emotionType":2,`, `"emotionId":"2659900",`, `"backgroundId":"im_bg_1"`, `"text":"🤔思考中",`} {
		less := strings.NewReplacer(part, "", `,}`, "}").Replace(body)
		if status, out := api(t, s, tok, "POST", "/v1.0/robot/emotion/reply", less); status != 400 || s.Emotion(id) {
			t.Errorf("without %s answered %d %s", part, status, out)
		}
	}
	if status, out := api(t, s, tok, "POST", "/v1.0/robot/emotion/reply", body); status != 200 || !s.Emotion(id) {
		t.Errorf("answered %d %s", status, out)
	}
	if status, _ := api(t, s, tok, "POST", "/v1.0/robot/emotion/reply", body); status != 200 {
		t.Errorf("a repetition is answered with %d", status)
	}
	waitViolation(t, s, dingtalktest.EmotionTwice)
	if status, out := api(t, s, tok, "POST", "/v1.0/robot/emotion/recall", body); status != 200 || s.Emotion(id) || len(s.EmotionsLeft()) > 0 {
		t.Errorf("answered %d %s", status, out)
	}
	if status, _ := api(t, s, tok, "POST", "/v1.0/robot/emotion/reply", strings.Replace(body, id, "nothing", 1)); status != 500 {
		t.Errorf("an unknown message is answered with %d", status)
	}
}

func TestUnknownPathsAreRefused(t *testing.T) {
	t.Parallel()
	s := dingtalktest.NewServer(t, still())
	if status, body := request(t, "POST", s.URL+"/v1.0/robot/none", "{}", nil); status != 404 || !strings.Contains(body, "InvalidAction.NotFound") {
		t.Errorf("answered %d %s", status, body)
	}
}
