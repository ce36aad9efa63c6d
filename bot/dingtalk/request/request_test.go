package request

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/value"
	"ebb/sessions"
)

func clientOf(t *testing.T, handle http.HandlerFunc) (*Client, string) {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return &Client{HTTP: s.Client(), Timeout: 5 * time.Second, UploadTimeout: 5 * time.Second}, s.URL
}

// A request that was refused at the door was not sent, one without an answer in time is silent, and an answer that broke off is not intact.
func TestRequestsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	c, base := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			_, _ = io.Copy(io.Discard, r.Body) // the server notices a client that leaves only behind the body
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, `{"errcode":0,`)
	})
	if a, err := c.Post(t.Context(), base+"/broken", nil, value.Object{}); err != nil || a.Intact || a.Status != http.StatusOK {
		t.Errorf("an answer that broke off: %+v, %v", a, err)
	}
	brief, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Post(brief, base+"/slow?access_token=TOKEN", nil, value.Object{})
	if failed := Lost("sending", err); !failed.Maybe || !failed.Silent || strings.Contains(failed.Error(), "TOKEN") {
		t.Errorf("without an answer in time: %+v", failed)
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, err = c.Post(t.Context(), gone.URL+"?access_token=TOKEN", nil, value.Object{})
	if failed := Lost("sending", err); failed.Maybe || failed.Silent || !errors.Is(failed, ErrUnsent) || strings.Contains(failed.Error(), "TOKEN") {
		t.Errorf("without a server: %+v", failed)
	}
}

// Texts are sent as they are, without the escapes of HTML.
func TestRequestBodies(t *testing.T) {
	t.Parallel()
	c, base := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		_ = r.Write(&b)
		body, _ := Encode(map[string]string{"got": b.String()})
		_, _ = w.Write(body)
	})
	a, err := c.Send(t.Context(), http.MethodPut, base, http.Header{"X-Token": {"t"}}, map[string]string{"text": "<b>&"})
	if got := a.Body.Str("got"); err != nil || !a.Intact || !strings.HasPrefix(got, "PUT ") || !strings.HasSuffix(got, `{"text":"<b>&"}`) ||
		!strings.Contains(got, "X-Token: t") || !strings.Contains(got, "Content-Type: application/json") {
		t.Errorf("sent %q, %v", got, err)
	}
	if _, err := c.Post(t.Context(), base, nil, func() {}); !errors.Is(err, ErrUnsent) {
		t.Errorf("a body that is no JSON: %v", err)
	}
}

// Each class leads to one kind of failure. Only a refusal of a conversation pauses it.
func TestAnswersAreJudged(t *testing.T) {
	t.Parallel()
	paused := pauses{}
	j := NewJudge("SECRET", &paused)
	for _, c := range []struct {
		status int
		body   string
		class  Class
		want   chat.SendError
	}{
		{200, `{"errcode":"130101"}`, Limited, chat.SendError{After: time.Minute}},
		{200, `{"errcode":88,"sub_code":"90018"}`, Busy, chat.SendError{After: WaitBusy}},
		{400, `{"code":"Forbidden.AccessDenied.QpsLimitForApi"}`, Busy, chat.SendError{After: WaitBusy}},
		{403, `{"code":"Forbidden.AccessDenied.ApiCountLimit"}`, Exhausted, chat.SendError{After: WaitExhausted}},
		{403, `{"code":"Forbidden.AccessDenied.AccessTokenPermissionDenied"}`, Denied, chat.SendError{After: WaitOperator, Account: true}},
		{400, `{"status":1111}`, Banned, chat.SendError{After: WaitBanned, Account: true}},
		{401, `{"code":"InvalidAuthentication"}`, BadToken, chat.SendError{After: WaitToken, Account: true}},
		{400, `{"code":"disbanded"}`, Unsendable, chat.SendError{Permanent: true}},
		{200, `{"errcode":"430101"}`, RefusedWords, chat.SendError{Permanent: true, Content: true}},
		{400, `{"code":"somethingNew","message":"it says SECRET"}`, Unknown, chat.SendError{Refused: true}},
		{404, ``, Again, chat.SendError{}},
		{503, `{"code":"ServiceUnavailable"}`, Unknown, chat.SendError{}},
		{504, ``, Again, chat.SendError{Maybe: true}},
		{408, ``, Again, chat.SendError{Maybe: true}},
		{200, `{"result":`, Again, chat.SendError{Maybe: true}},
	} {
		body, err := value.Parse(c.body)
		a := Answer{Status: c.status, Body: body, Intact: err == nil}
		if got := a.Class(); got != c.class {
			t.Errorf("%d %s: class %d, want %d", c.status, c.body, got, c.class)
		}
		failed := j.OpenAPI(sessions.Target{ConversationID: "c"}, a, "sending")
		if failed == nil {
			t.Errorf("%d %s: no failure", c.status, c.body)
			continue
		}
		if strings.Contains(failed.Error()+failed.Said, "SECRET") {
			t.Errorf("%d %s: says %q and %q", c.status, c.body, failed.Error(), failed.Said)
		}
		got := *failed
		if got.Err, got.Said = nil, ""; got != c.want {
			t.Errorf("%d %s: got %+v, want %+v", c.status, c.body, got, c.want)
		}
	}
	if len(paused) != 1 || j.Limited() != 3 {
		t.Errorf("paused %v, %d refusals for a rate", paused, j.Limited())
	}
	if failed := j.OpenAPI(sessions.Target{}, Answer{Status: 200, Intact: true, Body: value.Object{"errcode": "130101"}}, "x"); failed.After != waitFirst || len(paused) != 1 {
		t.Errorf("a call besides messages: %+v", failed)
	}
	if failed := j.OpenAPI(sessions.Target{StaffID: "u"}, Answer{Status: 200, Intact: true, Body: value.Object{"invalidStaffIdList": []any{"u"}}}, "x"); failed == nil || !failed.Permanent {
		t.Errorf("a person whom DingTalk does not know: %+v", failed)
	}
}

type pauses []sessions.ConversationID

func (p *pauses) NoteRefusal(c sessions.ConversationID) time.Duration {
	*p = append(*p, c)
	return time.Minute
}

func TestWithoutAddress(t *testing.T) {
	t.Parallel()
	cause := errors.New("refused")
	if err := WithoutAddress(&url.Error{Op: "Post", URL: "https://x/?ticket=TICKET", Err: cause}); !errors.Is(err, cause) || strings.Contains(err.Error(), "TICKET") {
		t.Errorf("got %v", err)
	}
}
