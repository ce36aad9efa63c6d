package dingtalktest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"
)

// Fault is a rule for the HTTP routes: matching calls get the action instead of the ordinary answer, and a transcript
// line of kind "fault".
type Fault struct {
	// Route is empty for every route.
	Route string `json:"route"`
	// Conversation, MsgID and Contains (in the body) narrow the match when not empty.
	Conversation string `json:"conversation"`
	MsgID        string `json:"msgId"`
	Contains     string `json:"contains"`
	// TrackID narrows the match to one card, Final to streaming calls that end one.
	TrackID string `json:"outTrackId"`
	Final   bool   `json:"final"`
	// Nth is the first matching call that the fault meets; 0 means 1.
	Nth int `json:"nth"`
	// Count bounds the firings: 0 means once, Unlimited until the rule is cleared.
	Count int `json:"count"`
	// Probability of each firing, by Seed; 0 means always.
	Probability float64 `json:"probability"`
	Seed        uint64  `json:"seed"`
	Action      Action  `json:"action"`
}

// Cuts end the connection instead of a full answer.
const (
	CutReset    = "reset"
	CutTruncate = "truncate"
	CutHang     = "hang"
)

// The zero Action changes nothing; with Delay alone the ordinary answer comes late.
type Action struct {
	Name string `json:"name"`
	// Status and Body replace the answer; Status 0 with a Body means 200.
	Status      int               `json:"status"`
	Body        string            `json:"body"`
	ContentType string            `json:"contentType"`
	Header      map[string]string `json:"header"`
	// Delay follows the effect and precedes the answer.
	Delay time.Duration `json:"-"`
	// Before precedes the effect, whether the client waits or not.
	Before time.Duration `json:"-"`
	// Effect posts the message, whatever is answered.
	Effect bool `json:"effect"`
	// Cut is empty or one of the Cut constants.
	Cut string `json:"cut"`
	// Open spoils the answer of connections/open: expired-ticket, used-ticket, unknown-ticket, dead-endpoint,
	// empty-endpoint, empty-ticket.
	Open string `json:"open"`
	// Card "undelivered" fails a delivery inside a 200.
	Card string `json:"card"`
}

func (a Action) plain() bool { return a.Status == 0 && a.Body == "" && a.Cut == "" }

// String is the action's name or a short description.
func (a Action) String() string {
	if a.Name != "" {
		return a.Name
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s %s %s", a.Status, a.Open, a.Cut, clip(a.Body)))
}

func (a Action) rejectsToken() bool {
	return a.Status == http.StatusUnauthorized || strings.Contains(a.Body, "InvalidAuthentication") ||
		strings.Contains(a.Body, `"errcode":40014`) || strings.Contains(a.Body, `"errcode":42001`)
}

// ErrCode answers 200 with an errcode, as webhooks and the old API do.
func ErrCode(code int, message string) Action {
	return Action{Name: fmt.Sprintf("errcode %d", code), Body: fmt.Sprintf(`{"errcode":%d,"errmsg":%q}`, code, message)}
}

// Status answers with an HTTP status and an HTML page, as proxies do.
func Status(status int) Action {
	return Action{
		Name: fmt.Sprintf("status %d", status), Status: status, ContentType: "text/html",
		Body: fmt.Sprintf("<html><body><h1>%d %s</h1></body></html>", status, http.StatusText(status)),
	}
}

// APIError answers with an error of the new API.
func APIError(status int, code, message string) Action {
	return Action{
		Name: fmt.Sprintf("%d %s", status, code), Status: status,
		Body: fmt.Sprintf(`{"code":%q,"requestid":"sim","message":%q}`, code, message),
	}
}

// Slow answers d later, with immediate effect: a client that gives up has posted all the same.
func Slow(d time.Duration) Action { return Action{Name: "slow " + d.String(), Delay: d} }

var actions = map[string]Action{
	// session webhook: 200 with an errcode
	"busy":             ErrCode(-1, "system busy"),
	"rate-limited":     ErrCode(130101, "send too fast, exceed 20 times per minute"),
	"throttled":        ErrCode(410100, "sending too fast"),
	"session-gone":     ErrCode(300001, "session 不存在"),
	"unsupported-type": ErrCode(400105, "unsupported msgtype"),
	"bot-disabled":     ErrCode(400102, "the bot is disabled"),
	"bot-not-in-group": ErrCode(400106, "the bot is not in the group"),
	"disbanded":        ErrCode(400013, "the group is disbanded"),
	"unsafe-text":      ErrCode(430102, "unsafe text"),
	"too-long":         ErrCode(460101, "message too long, exceed 20000 bytes"),
	"app-qps":          ErrCode(90018, "the app's QPS is exceeded"),
	"zero-as-string":   {Name: "errcode as a string", Body: `{"errcode":"0","errmsg":"ok"}`, Effect: true},
	"unknown-code":     ErrCode(999999, "refused"),
	// any route
	"408":              Status(408),
	"499":              Status(499),
	"500":              Status(500),
	"502":              Status(502),
	"503":              Status(503),
	"504":              Status(504),
	"502-after":        {Name: "502 after the effect", Status: 502, ContentType: "text/html", Body: "<html><body>502</body></html>", Effect: true},
	"html":             {Name: "html", Body: "<html><body>ok</body></html>", ContentType: "text/html"},
	"truncated":        {Name: "truncated", Cut: CutTruncate, Effect: true},
	"reset-before":     {Name: "reset before the effect", Cut: CutReset},
	"reset-after":      {Name: "reset after the effect", Cut: CutReset, Effect: true},
	"posted-timeout":   {Name: "posted, answered too late", Delay: 6 * time.Second, Effect: true},
	"slow":             Slow(6 * time.Second),
	"hang":             {Name: "hang", Cut: CutHang},
	"late":             {Name: "late effect", Before: 2 * time.Second},
	"redirect":         {Name: "redirect", Status: 302, Header: map[string]string{"Location": "/elsewhere"}},
	"xml":              {Name: "xml", Body: "<OpenConnectionResponse><endpoint/></OpenConnectionResponse>", ContentType: "application/xml"},
	"ip-ban":           {Name: "ip-ban", Body: `{"status":1111,"wait":5,"source":"x5","punish":"deny","uuid":"sim"}`},
	"plain-http-proxy": {Name: "plain-http-proxy", Status: 400, ContentType: "text/html", Body: "<html>The plain HTTP request was sent to HTTPS port</html>"},
	// connections/open and the handshake
	"auth-failed":    APIError(401, "authFailed", "鉴权失败"),
	"bad-request":    APIError(400, "invalidParameter", "the application is not published"),
	"unavailable":    APIError(503, "ServiceUnavailable", "try later"),
	"expired-ticket": {Name: "expired-ticket", Open: "expired-ticket"},
	"used-ticket":    {Name: "used-ticket", Open: "used-ticket"},
	"unknown-ticket": {Name: "unknown-ticket", Open: "unknown-ticket"},
	"dead-endpoint":  {Name: "dead-endpoint", Open: "dead-endpoint"},
	"empty-endpoint": {Name: "empty-endpoint", Open: "empty-endpoint"},
	"empty-ticket":   {Name: "empty-ticket", Open: "empty-ticket"},
	// open API and tokens
	"qps":             APIError(403, "Forbidden.AccessDenied.QpsLimitForAppkeyAndApi", "too many calls"),
	"quota":           APIError(403, "Forbidden.AccessDenied.ApiCountLimitForOrg", "the monthly quota is used up"),
	"invalid-token":   APIError(400, "InvalidAuthentication", "不合法的access_token"),
	"unauthorized":    APIError(401, "InvalidAuthentication", "unauthorized"),
	"token-invalid":   ErrCode(40014, "invalid access_token"),
	"token-expired":   ErrCode(42001, "access_token expired"),
	"send-too-fast":   APIError(400, "send.too.fast", "sending too fast"),
	"group-disbanded": APIError(400, "group.disbanded", "the group is disbanded"),
	"param-too-long":  APIError(400, "invalidParameter.msgParam.tooLong", "msgParam is too long"),
	"system-error":    APIError(500, "system.error", "system error"),
	"system-err":      APIError(500, "system.err", "system error"),
	// cards
	"card-undelivered":  {Name: "card not delivered", Card: "undelivered"},
	"card-exists":       APIError(400, "param.cardAlreadyExist", "param.cardAlreadyExist"),
	"card-gone":         APIError(400, "param.cardNotExist", "param.cardNotExist"),
	"template-closed":   APIError(400, "param.templateUnpublished", "param.templateUnpublished"),
	"no-success":        {Name: "no success in a 200", Body: `{"success":false,"result":false}`},
	"content-unsafe":    APIError(400, "param.contentUnsafe", "param.contentUnsafe"),
	"content-too-large": APIError(400, "param.stream.content", "content is too large"),
	"unknown-error":     APIError(500, "unknownError", "unknownError"),
	"card-system-busy":  APIError(500, "system.busy", "system.busy"),
	"permission": {Name: "permission", Status: 403, Body: `{"code":"Forbidden.AccessDenied.AccessTokenPermissionDenied",` +
		`"requestid":"sim","message":"permission denied","accessdenieddetail":{"requiredScopes":["qyapi_robot_sendmsg"]}}`},
	"flow-controlled": {Name: "flow-controlled", Body: `{"processQueryKey":"","invalidStaffIdList":[],"flowControlledStaffIdList":["u0001"]}`},
}

// Do returns an action of the catalogue. It panics on an unknown name.
func Do(name string) Action {
	a, ok := actions[name]
	if !ok {
		panic("dingtalktest: no action is named " + name)
	}
	if a.Name == "" {
		a.Name = name
	}
	return a
}

// ActionNames are the catalogue's names, sorted.
func ActionNames() []string {
	out := make([]string, 0, len(actions))
	for name := range actions {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

type faultState struct {
	Fault
	id      int
	matched int
	fired   int
	rng     *rand.Rand
}

type faults struct {
	*core
	*people
	rules    []*faultState
	nextRule int
}

// AddFault appends a rule and returns its number; the first rule that fires decides.
func (s *faults) AddFault(f Fault) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextRule++
	if f.Seed == 0 {
		f.Seed = s.opts.Seed
	}
	s.rules = append(s.rules, &faultState{Fault: f, id: s.nextRule, rng: rand.New(rand.NewPCG(f.Seed, uint64(s.nextRule)))})
	return s.nextRule
}

// ClearFaults removes the rules with the given numbers, or all.
func (s *faults) ClearFaults(ids ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var kept []*faultState
	for _, f := range s.rules {
		if len(ids) > 0 && !slices.Contains(ids, f.id) {
			kept = append(kept, f)
		}
	}
	s.rules = kept
}

// FaultFired counts a rule's firings.
func (s *faults) FaultFired(id int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.rules {
		if f.id == id {
			return f.fired
		}
	}
	return 0
}

func (s *faults) faultLocked(c *call) bool {
	for _, f := range s.rules {
		if !f.matches(c) {
			continue
		}
		f.matched++
		if f.matched < f.Nth || (f.Count >= 0 && f.fired >= max(f.Count, 1)) {
			continue
		}
		if f.Probability > 0 && f.rng.Float64() >= f.Probability {
			continue
		}
		f.fired++
		c.fault = f.Action
		if f.Action.rejectsToken() {
			for _, a := range s.apps {
				a.tokenExcuses++
			}
		}
		s.noteLocked(Entry{
			Kind: "fault", Route: c.route, MsgID: c.head.msgID, Conversation: c.head.conversation,
			Detail: fmt.Sprintf("rule %d, time %d: %s", f.id, f.fired, f.Action),
		})
		return true
	}
	return false
}

func (f *faultState) matches(c *call) bool {
	return (f.Route == "" || f.Route == c.route) &&
		(f.Conversation == "" || f.Conversation == c.head.conversation) &&
		(f.MsgID == "" || f.MsgID == c.head.msgID) &&
		(f.TrackID == "" || f.TrackID == c.head.OutTrackID) &&
		(!f.Final || c.route == RouteCardStream && (c.head.IsFinalize || c.head.IsError)) &&
		(f.Contains == "" || bytes.Contains(c.body, []byte(f.Contains)))
}

// plantedLocked reports whether a fault made a bad ticket.
func (s *faults) plantedLocked() bool {
	for _, f := range s.rules {
		if f.fired > 0 && strings.HasSuffix(f.Action.Open, "-ticket") {
			return true
		}
	}
	return false
}
