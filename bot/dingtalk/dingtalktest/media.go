package dingtalktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"
)

type file struct {
	name, contentType string
	data              []byte
	app               *app // app whose bot may fetch it; nil: any
	expires           time.Time
}

type media struct {
	*core
	*people
	*openAPI
	files map[string]*file // by downloadCode
}

// AddFile stores the file of a message and returns its downloadCode.
func (s *media) AddFile(name, contentType string, data []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	code := "dc" + randomHex(12)
	s.files[code] = &file{name: name, contentType: contentType, data: data}
	return code
}

// DropFile lets the code of a file expire.
func (s *media) DropFile(code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.files, code)
}

func (s *media) download(c *call) response {
	var q struct {
		DownloadCode string `json:"downloadCode"`
		RobotCode    string `json:"robotCode"`
	}
	_ = json.Unmarshal(c.body, &q) // an unreadable body has no code
	a := s.appByRobotLocked(q.RobotCode)
	f := s.files[q.DownloadCode]
	switch {
	case q.RobotCode == "":
		return *badParam("invalidParameter.robotCode.empty", "robotCode is empty")
	case a != c.app || (f != nil && f.app != nil && f.app != a):
		return *badParam("invalidParameter.robotCode.auth", "the file is another robot's")
	case f == nil:
		return *badParam("invalidParameter.downloadCode", "the code is wrong or has expired")
	}
	f.expires = s.nowLocked().Add(15 * time.Minute)
	return jsonResponse(map[string]string{
		"downloadUrl": fmt.Sprintf("%s/_files/%s.file?Expires=%d", s.URL, q.DownloadCode, f.expires.Unix()),
	})
}

func (s *media) serveFile(c *call) response {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[strings.TrimSuffix(path.Base(c.r.URL.Path), ".file")]
	if f == nil || s.nowLocked().After(f.expires) {
		return response{status: http.StatusForbidden, contentType: "application/xml", raw: []byte("<Error><Code>AccessDenied</Code></Error>")}
	}
	return response{status: http.StatusOK, contentType: f.contentType, raw: f.data}
}

var mediaLimits = map[string]struct {
	bytes int
	kinds string
}{
	"image": {20 << 20, "jpg jpeg gif png bmp"},
	"voice": {2 << 20, "amr mp3 wav"},
	"video": {20 << 20, "mp4"},
	"file":  {20 << 20, "doc docx xls xlsx ppt pptx zip pdf rar"},
}

func (s *media) upload(c *call) response {
	s.mu.Lock()
	t := s.tokenLocked(c.r.URL.Query().Get("access_token"))
	s.mu.Unlock()
	if t == nil {
		return hookError(40014, "不合法的access_token")
	}
	if refused, limited := s.uploadLimit(c, t.app); limited {
		return refused
	}
	kind := c.r.URL.Query().Get("type")
	limit, ok := mediaLimits[kind]
	if !ok {
		return hookError(40004, "unknown media type "+kind)
	}
	c.r.Body = io.NopCloser(bytes.NewReader(c.body))
	part, header, err := c.r.FormFile("media")
	if err != nil {
		return hookError(40035, "the form has no file field media")
	}
	defer part.Close()
	data, err := io.ReadAll(part)
	ext := strings.TrimPrefix(strings.ToLower(path.Ext(header.Filename)), ".")
	switch {
	case err != nil:
		return hookError(40035, "the form cannot be read")
	case len(data) > limit.bytes:
		return hookError(40006, "the file is too large")
	case ext == "" || !strings.Contains(" "+limit.kinds+" ", " "+ext+" "):
		return hookError(40005, "the kind of file is not allowed")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := "@lAL" + randomHex(12)
	s.uploads[id] = &file{name: header.Filename, contentType: header.Header.Get("Content-Type"), data: data, app: t.app}
	return jsonResponse(map[string]any{
		"errcode": 0, "errmsg": "ok", "media_id": id, "created_at": s.nowLocked().UnixMilli(), "type": kind,
	})
}

// uploadLimit has the codes of the old API.
func (s *media) uploadLimit(c *call, a *app) (response, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.app = a
	r, limited := s.apiLimitLocked(c)
	if !limited {
		return r, false
	}
	if strings.Contains(string(r.raw), "ApiCountLimit") {
		return hookError(90020, "the monthly quota is used up"), true
	}
	return hookError(90018, "too many calls of this API by this application"), true
}

// Media returns a file that the bot uploaded.
func (s *media) Media(id string) (name string, data []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.uploads[id]
	if f == nil {
		return "", nil, false
	}
	return f.name, f.data, true
}
