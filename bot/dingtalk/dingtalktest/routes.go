package dingtalktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Faults and the transcript name the routes by these constants.
const (
	RouteOpen          = "open"
	RouteConnect       = "connect"
	RouteWebhook       = "webhook"
	RouteCustomWebhook = "robot-send"
	RouteToken         = "token"
	RouteGetToken      = "gettoken"
	RouteGroupSend     = "group-send"
	RouteDirectSend    = "direct-send"
	RouteGroupRecall   = "group-recall"
	RouteDirectRecall  = "direct-recall"
	RouteDownload      = "download"
	RouteFile          = "file"
	RouteUpload        = "upload"
	RouteEmotion       = "emotion"
	RouteEmotionRecall = "emotion-recall"
	RouteCardCreate    = "card-create"
	RouteCardDeliver   = "card-deliver"
	RouteCardSend      = "card-create-and-deliver"
	RouteCardUpdate    = "card-update"
	RouteCardStream    = "card-stream"
	RouteAuthorize     = "authorize"
	RouteUserToken     = "user-token"
	RouteMe            = "users-me"
	RouteUserByUnionID = "user-by-unionid"
)

type call struct {
	r     *http.Request
	route string
	body  []byte
	head  callHead
	app   *app // app of the access token
	fault Action
}

// Faults are matched by these fields.
type callHead struct {
	OpenConversationID string   `json:"openConversationId"`
	OpenMsgID          string   `json:"openMsgId"`
	UserIDs            []string `json:"userIds"`
	OutTrackID         string   `json:"outTrackId"`
	OpenSpaceID        string   `json:"openSpaceId"`
	IsFinalize         bool     `json:"isFinalize"`
	IsError            bool     `json:"isError"`

	conversation, msgID string
}

type response struct {
	status      int
	contentType string // default application/json
	header      map[string]string
	raw         []byte
}

func jsonResponse(v any) response {
	b, _ := json.Marshal(v) // maps and structs of plain values
	return response{status: http.StatusOK, raw: b}
}

func apiError(status int, code, message string) response {
	r := jsonResponse(map[string]string{"code": code, "requestid": newUUID(), "message": message})
	r.status = status
	return r
}

// An error of the old API is a code in a 200.
func hookError(code int, message string) response {
	return jsonResponse(map[string]any{"errcode": code, "errmsg": message})
}

func (r response) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	if r.contentType != "" {
		w.Header().Set("Content-Type", r.contentType)
	}
	for k, v := range r.header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(r.raw) // the client may have gone
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range map[string]http.Handler{
		"POST /v1.0/gateway/connections/open":        s.route(RouteOpen, s.open),
		"GET /connect":                               s.route(RouteConnect, nil),
		"POST /robot/sendBySession":                  s.route(RouteWebhook, s.sendBySession),
		"POST /robot/send":                           s.route(RouteCustomWebhook, s.sendCustom),
		"POST /v1.0/oauth2/accessToken":              s.route(RouteToken, s.accessToken),
		"GET /gettoken":                              s.route(RouteGetToken, s.getToken),
		"POST /v1.0/robot/groupMessages/send":        s.route(RouteGroupSend, s.api(s.groupSend)),
		"POST /v1.0/robot/oToMessages/batchSend":     s.route(RouteDirectSend, s.api(s.directSend)),
		"POST /v1.0/robot/groupMessages/recall":      s.route(RouteGroupRecall, s.api(s.recall)),
		"POST /v1.0/robot/otoMessages/batchRecall":   s.route(RouteDirectRecall, s.api(s.recall)),
		"POST /v1.0/robot/messageFiles/download":     s.route(RouteDownload, s.api(s.download)),
		"GET /_files/{code}":                         s.route(RouteFile, s.serveFile),
		"POST /media/upload":                         s.route(RouteUpload, s.upload),
		"POST /v1.0/robot/emotion/reply":             s.route(RouteEmotion, s.api(s.emotion)),
		"POST /v1.0/robot/emotion/recall":            s.route(RouteEmotionRecall, s.api(s.emotion)),
		"POST /v1.0/card/instances":                  s.route(RouteCardCreate, s.api(s.cardCreate)),
		"POST /v1.0/card/instances/deliver":          s.route(RouteCardDeliver, s.api(s.cardDeliver)),
		"POST /v1.0/card/instances/createAndDeliver": s.route(RouteCardSend, s.api(s.cardSend)),
		"PUT /v1.0/card/instances":                   s.route(RouteCardUpdate, s.api(s.cardUpdate)),
		"PUT /v1.0/card/streaming":                   s.route(RouteCardStream, s.api(s.cardStream)),
		"GET /oauth2/auth":                           s.route(RouteAuthorize, s.authorize),
		"POST /v1.0/oauth2/userAccessToken":          s.route(RouteUserToken, s.userToken),
		"GET /v1.0/contact/users/me":                 s.route(RouteMe, s.me),
		"POST /topapi/user/getbyunionid":             s.route(RouteUserByUnionID, s.userByUnionID),
		"/": s.route("unknown", func(c *call) response {
			return apiError(http.StatusNotFound, "InvalidAction.NotFound", "no such API: "+c.r.Method+" "+c.r.URL.Path)
		}),
	} {
		mux.Handle(pattern, h)
	}
	return mux
}

// f is nil for the stream handshake, which takes the socket over.
func (s *Server) route(name string, f func(*call) response) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.begin() {
			return
		}
		defer s.wg.Done()
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 32<<20))
		if err != nil {
			apiError(http.StatusRequestEntityTooLarge, "requestTooLarge", "the body cannot be read").write(w)
			return
		}
		c := &call{r: r, route: name, body: body}
		_ = json.Unmarshal(body, &c.head) // not every body is JSON
		s.mu.Lock()
		s.locateLocked(c)
		hit := s.faultLocked(c)
		delay := s.latencyLocked()
		s.mu.Unlock()
		s.sleep(delay, r.Context().Done())
		if hit {
			s.misbehave(w, c, f)
			return
		}
		if f == nil {
			s.connect(w, c)
			return
		}
		resp := f(c)
		s.logCall(c, resp.status, "")
		resp.write(w)
	})
}

func (s *Server) locateLocked(c *call) {
	h := &c.head
	h.conversation, h.msgID = h.OpenConversationID, h.OpenMsgID
	if se := s.sessions[c.r.URL.Query().Get("session")]; se != nil {
		h.conversation, h.msgID = se.group.ID, se.msgID
	}
	if len(h.UserIDs) > 0 {
		h.conversation = s.directLocked(h.UserIDs[0])
	}
	if k := s.byID[h.OutTrackID]; k != nil && k.conversation != "" {
		h.conversation = k.conversation
	} else if h.OpenSpaceID != "" {
		h.conversation = s.spaceLocked(h.OpenSpaceID)
	}
}

func (s *Server) logCall(c *call, status int, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteLocked(Entry{
		Kind: "http", Route: c.route, MsgID: c.head.msgID, Conversation: c.head.conversation, Status: status, Detail: detail,
	})
}

func (s *Server) misbehave(w http.ResponseWriter, c *call, f func(*call) response) {
	a := c.fault
	var resp response
	s.sleep(a.Before, nil)
	handled := f != nil && (a.Effect || a.plain())
	if handled {
		resp = f(c)
	} else if (a.Status >= 500 || a.Status == http.StatusBadRequest) && !a.rejectsToken() {
		s.countRefused(c)
	}
	if a.Delay > 0 && !s.sleep(a.Delay, c.r.Context().Done()) {
		s.logCall(c, 0, "the client did not wait for "+a.String())
		return
	}
	if f == nil && a.plain() {
		s.connect(w, c)
		return
	}
	if a.Status != 0 || a.Body != "" {
		resp = response{status: a.Status, contentType: a.ContentType, header: a.Header, raw: []byte(a.Body)}
		if resp.status == 0 {
			resp.status = http.StatusOK
		}
	}
	s.logCall(c, resp.status, "by fault: "+a.String())
	switch a.Cut {
	case CutHang:
		s.sleep(time.Hour, c.r.Context().Done())
	case CutReset:
		hijack(w, func(rw io.Writer) {})
	case CutTruncate:
		hijack(w, func(rw io.Writer) {
			body := resp.raw
			if len(body) == 0 {
				body = []byte(`{"errcode":0,"errmsg":"ok"}`)
			}
			_, _ = fmt.Fprintf(rw, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %s\r\n\r\n", strconv.Itoa(len(body)))
			_, _ = io.Copy(rw, bytes.NewReader(body[:len(body)/2]))
		})
	default:
		resp.write(w)
	}
}

// hijack resets the connection if f writes nothing.
func hijack(w http.ResponseWriter, f func(io.Writer)) {
	hj, ok := w.(http.Hijacker)
	if !ok {
		return
	}
	nc, _, err := hj.Hijack()
	if err != nil {
		return
	}
	var buf bytes.Buffer
	f(&buf)
	if buf.Len() == 0 {
		resetTCP(nc)
	} else {
		_, _ = nc.Write(buf.Bytes())
	}
	_ = nc.Close()
}
