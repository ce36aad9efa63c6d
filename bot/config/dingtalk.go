package config

import (
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"ebb/bot/config/strict"
)

// Robots are the bots of a file: an object for one, or a list of objects.
type Robots []DingTalkConfig

// DingTalkConfig has the DingTalk app and its delivery settings.
type DingTalkConfig struct {
	// Name is the bot's own name, in place of agent.name, and names it in logs and metrics. Required where there are several.
	Name string `json:"name"`
	// ClientID is the AppKey, ClientSecret the AppSecret. Both are required by serve.
	ClientID     string `json:"client_id"`
	ClientSecret Secret `json:"client_secret"`
	// APIBase serves the stream gateway and the open API.
	APIBase string `json:"api_base"`
	// OAPIBase is the only host whose session webhooks are called.
	OAPIBase string `json:"oapi_base"`
	// Reply is "markdown" or "card".
	Reply string `json:"reply"`
	// CardTemplateID is required for reply "card".
	CardTemplateID string `json:"card_template_id"`
	// CardContentKey is the template's variable for the text.
	CardContentKey string `json:"card_content_key"`
	// CardStream is "auto": as far as the month's calls permit; "always" or "never".
	CardStream string `json:"card_stream"`
	// CardInterval is between two updates of a card.
	CardInterval time.Duration `json:"card_interval"`
	// CardReasoning shows the model's reasoning while it thinks.
	CardReasoning bool `json:"card_reasoning"`
	// Reaction marks questions until they are answered: "on" or "off".
	Reaction string `json:"reaction"`
	// PictureHosts are the hosts whose pictures an answer may show.
	PictureHosts []string `json:"picture_hosts"`
	// RepliesPerMinute is for one conversation. 0: no limit.
	RepliesPerMinute int `json:"replies_per_minute"`
	// APICallsPerMonth is the organization's quota of calls to the open API. 0: no bound.
	APICallsPerMonth int `json:"api_calls_per_month"`
	// Connections is "all": every replica holds a stream connection; or "one": the leader holds it and the others stand
	// by.
	Connections string `json:"connections"`
	// KeepAlive is between two pings on the stream connection, 15 to 30 s.
	KeepAlive time.Duration `json:"keepalive"`

	// Prompt replaces agent.prompt. A group's own prompt comes before it.
	Prompt string `json:"prompt"`
	// Model replaces llm.default. A group's own model comes before it.
	Model string `json:"model"`
	// Tools are the tools that the model may use, as those of a group, which come before it. Empty: all.
	Tools []string `json:"tools"`
	// Access has further keys in place of those of the section access; the others are filled in from there. Nil: none.
	Access *AccessConfig `json:"access"`
}

// Values of dingtalk.reply.
const (
	ReplyMarkdown = "markdown"
	ReplyCard     = "card"
)

// Values of dingtalk.reaction.
const (
	ReactionOff = "off"
	ReactionOn  = "on"
)

// Values of dingtalk.connections.
const (
	ConnectionsAll = "all"
	ConnectionsOne = "one"
)

func defaultRobot(src *strict.Source) DingTalkConfig {
	d := plainRobot()
	d.ClientID = src.Expand("dingtalk.client_id", "${DINGTALK_CLIENT_ID}")
	d.ClientSecret = Secret(src.Expand("dingtalk.client_secret", "${DINGTALK_CLIENT_SECRET}"))
	return d
}

// plainRobot has no credentials: those of the environment belong to an only bot.
func plainRobot() DingTalkConfig {
	return DingTalkConfig{
		APIBase: "https://api.dingtalk.com", OAPIBase: "https://oapi.dingtalk.com",
		Reply: ReplyMarkdown, CardContentKey: "content", CardStream: "auto", CardInterval: 800 * time.Millisecond, Reaction: ReactionOff,
		PictureHosts: []string{}, RepliesPerMinute: 20, APICallsPerMonth: 5000, Connections: ConnectionsAll, KeepAlive: 20 * time.Second,
		Tools: []string{},
	}
}

// Named returns a bot by its name; the first for an empty name.
func (r Robots) Named(name string) (DingTalkConfig, error) {
	var names []string
	for _, d := range r {
		if name == "" || d.Name == name {
			return d, nil
		}
		names = append(names, d.Name)
	}
	return DingTalkConfig{}, fmt.Errorf("no bot has the name %q, want one of %s", name, strict.Quoted(names))
}

var robotsType = reflect.TypeFor[Robots]()

// Decode reads one object, or a list. Errors name the key as the file has it.
func (r *Robots) Decode(src *strict.Source, path string, v hujson.Value) {
	list, isList := v.Value.(*hujson.Array)
	if !isList {
		if _, isObject := v.Value.(*hujson.Object); !isObject {
			src.Fail(path, "got %s, want an object, or a list of objects", strict.KindName(v))
			return
		}
		strict.Decode(src, path, v, &(*r)[0])
		return
	}
	src.Forget(path)
	all := make(Robots, len(list.Elements))
	for i, e := range list.Elements {
		all[i] = plainRobot()
		strict.Decode(src, listedPath(i), e, &all[i])
	}
	*r = all
}

// decodeAccess reads dingtalk.access on top of the section access, wherever the file has that.
func (r Robots) decodeAccess(src *strict.Source, root hujson.Value, common AccessConfig) {
	for i := range r {
		pointer := "/dingtalk/access"
		if src.IsGiven(listedPath(0)) {
			pointer = fmt.Sprintf("/dingtalk/%d/access", i)
		}
		v := root.Find(pointer)
		if v == nil || v.Value.Kind() == 'n' {
			continue
		}
		own := common
		strict.Decode(src, robotPath(src, i)+".access", *v, &own)
		r[i].Access = &own
	}
}

func listedPath(i int) string { return fmt.Sprintf("dingtalk[%d]", i) }

// robotPath is the path of a bot in the file.
func robotPath(s *strict.Source, i int) string {
	if s.IsGiven(listedPath(0)) {
		return listedPath(i)
	}
	return "dingtalk"
}

var indexForm = regexp.MustCompile(`^dingtalk\[\d+\]`)

// withoutIndex is the path of a bot's key as if it were the only one.
func withoutIndex(path string) string { return indexForm.ReplaceAllString(path, "dingtalk") }

// check also compares the bots. Two with the same credentials would share each message at random.
func (r Robots) check(k *strict.Source, need Need, llm LLMConfig, toolsConfig ToolsConfig) {
	k.Want(len(r) > 0, "dingtalk", "an empty list", "an object, or a list with at least one")
	names, ids := map[string]string{}, map[string]string{}
	for i := range r {
		d, at := &r[i], robotPath(k, i)
		d.check(k, at, need)
		d.checkSettings(k, at, llm, toolsConfig)
		if len(r) == 1 {
			return
		}
		k.Required(at+".name", d.Name, "a name of its own, as there are several bots")
		unique := func(key, value string, first map[string]string) {
			if other, twice := first[value]; twice && value != "" {
				k.Fail(at+key, "got that of %s too, want one of its own", other)
			}
			first[value] = at
		}
		unique(".name", d.Name, names)
		unique(".client_id", d.ClientID, ids)
		k.Want(d.Connections == r[0].Connections, at+".connections", strconv.Quote(d.Connections), "%q as %s has: a replica connects all bots, or none",
			r[0].Connections, robotPath(k, 0))
	}
}

// checkSettings judges what a bot has in place of the common settings.
func (d *DingTalkConfig) checkSettings(k *strict.Source, at string, llm LLMConfig, toolsConfig ToolsConfig) {
	if d.Name != "" {
		wantName(k, at+".name", d.Name, "a name")
		k.Advise(!strings.HasPrefix(d.Name, "@"), at+".name", "%q begins with @, which stands before the name where it is shown", d.Name)
	}
	k.Want(d.Model == "" || llm.has(d.Model), at+".model", strconv.Quote(d.Model), "the name of a model in llm.models: %s", llm.names())
	toolsConfig.checkNames(k, at, d.Tools)
	if d.Access != nil {
		d.Access.check(k, at+".access")
	}
}

// check wants credentials only where a command connects to DingTalk, and judges given ones always: doctor and check run without them.
func (d *DingTalkConfig) check(k *strict.Source, at string, need Need) {
	if need&NeedDingTalk != 0 {
		k.Required(at+".client_id", d.ClientID, "the Client ID (AppKey) of the DingTalk app")
		k.Required(at+".client_secret", d.ClientSecret.Reveal(), "the Client Secret (AppSecret) of the DingTalk app")
	}
	wantCredential(k, at+".client_id", d.ClientID, "the Client ID (AppKey) of the DingTalk app")
	wantCredential(k, at+".client_secret", d.ClientSecret.Reveal(), "the Client Secret (AppSecret) of the DingTalk app")
	k.Advise(d.ClientID == "" || d.ClientID != d.ClientSecret.Reveal(), at+".client_secret", "is the same as dingtalk.client_id")
	wantDingTalkURL(k, at+".api_base", d.APIBase, "https://api.dingtalk.com", "oapi.dingtalk.com")
	wantDingTalkURL(k, at+".oapi_base", d.OAPIBase, "https://oapi.dingtalk.com", "api.dingtalk.com")
	k.OneOf(at+".reply", d.Reply, []string{ReplyMarkdown, ReplyCard})
	if d.Reply == ReplyCard {
		k.Required(at+".card_template_id", d.CardTemplateID, `the id of a card template, because dingtalk.reply is "card"`)
	}
	k.Advise(templateForm.MatchString(d.CardTemplateID), at+".card_template_id", "%q does not look like the id of a card template", d.CardTemplateID)
	k.Required(at+".card_content_key", d.CardContentKey, "the template's variable for the text")
	k.Advise(variableForm.MatchString(d.CardContentKey), at+".card_content_key", `%q does not look like a variable, such as "content"`, d.CardContentKey)
	k.OneOf(at+".card_stream", d.CardStream, []string{"auto", "always", "never"})
	k.OneOf(at+".reaction", d.Reaction, []string{ReactionOff, ReactionOn})
	k.Want(d.CardInterval >= 100*time.Millisecond && d.CardInterval <= time.Minute, at+".card_interval", strict.DurationText(d.CardInterval), "100ms to 1m")
	for i, h := range d.PictureHosts {
		k.Want(pictureHost.MatchString(h), fmt.Sprintf("%s.picture_hosts[%d]", at, i), strconv.Quote(h), `a host such as "img.example.com", or "*.example.com"`)
	}
	k.Want(d.RepliesPerMinute >= 0, at+".replies_per_minute", d.RepliesPerMinute, "0 (no limit) or more")
	k.Want(d.APICallsPerMonth >= 0, at+".api_calls_per_month", d.APICallsPerMonth, "0 (no bound) or more")
	k.OneOf(at+".connections", d.Connections, []string{ConnectionsAll, ConnectionsOne})
	k.Want(d.KeepAlive >= 15*time.Second && d.KeepAlive <= 30*time.Second, at+".keepalive", strict.DurationText(d.KeepAlive), "15s to 30s")
}

var pictureHost = regexp.MustCompile(`^(\*\.)?([A-Za-z0-9_-]+\.)*[A-Za-z0-9_-]+$`)

var (
	templateForm = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)
	variableForm = regexp.MustCompile(`^[\p{L}\p{N}_.-]*$`)
)

// wantDingTalkURL refuses the other server of DingTalk, and a path of DingTalk's own, which is added to it. Other servers have any path.
func wantDingTalkURL(k *strict.Source, path, got, usual, other string) {
	wantURL(k, path, got)
	u, err := url.Parse(got)
	if err != nil || k.Failed(path) {
		return
	}
	isDingTalk := strings.HasSuffix(u.Hostname(), ".dingtalk.com")
	k.Want(u.Hostname() != other && !(isDingTalk && strings.Trim(u.Path, "/") != ""), path, strconv.Quote(got), "the server alone, as in %s", usual)
	k.Advise(!isDingTalk || u.Scheme == "https", path, "sends secrets in the clear, want %s", usual)
}

// warn records values of a bot that say something else than they look like.
func (d *DingTalkConfig) warn(src *strict.Source, at string, admins []string) {
	for i, h := range d.PictureHosts {
		if strings.HasPrefix(h, "*.") && strings.Count(h, ".") == 1 {
			src.Warn(fmt.Sprintf("%s.picture_hosts[%d]", at, i), "allows all hosts of %s", h[2:])
		}
	}
	if d.Access != nil {
		d.Access.warn(src, at+".access", admins)
	}
}
