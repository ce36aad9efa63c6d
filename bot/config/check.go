package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ebb/bot/config/strict"
	"ebb/sql"
)

// Need lists the credentials that a command requires. All other checks always apply.
type Need uint8

// Credentials, combined with |. The database needs none: without a URL it is a private server.
const (
	NeedDingTalk Need = 1 << iota
	NeedLLM
	NeedNothing Need = 0
	NeedServe        = NeedDingTalk | NeedLLM
)

func (c *Config) check(k *strict.Source, need Need) {
	c.checkRobots(k, need)
	c.LLM.check(k, need)
	c.Agent.check(k)
	c.Agent.Compaction.check(k, c.LLM, c.policies)
	c.Agent.Memory.check(k)
	c.Access.check(k, "access")
	c.Tools.check(k)
	c.checkGroups(k)
	c.checkProcess(k)
	c.checkTimes(k)
	if !k.HasFailed() {
		c.fit(k)
		c.Warnings = k.Warnings()
	}
}

// wantName warns of a text that no one types or sees as it is.
func wantName(k *strict.Source, path, value, what string) {
	k.Required(path, value, what)
	stray := strings.TrimSpace(value) != value || strings.ContainsFunc(value, unicode.IsControl) || utf8.RuneCountInString(value) > maxName
	k.Advise(!stray, path, "has blanks at its ends, line breaks, or more than %d characters", maxName)
}

const maxName = 200

func isNoKey(r rune) bool { return r <= ' ' || r > '~' }

// credential refuses a key that no HTTP header can carry, or that was copied with the words around it. The error has no part of it.
func wantCredential(k *strict.Source, path, value, what string) {
	wantSecret(k, path, value, what)
	k.Want(!strings.ContainsFunc(value, isNoKey), path, "a text with blanks or other letters than ASCII", "%s alone, without \"Bearer\" and blanks", what)
}

// placeholder is the text of an example. Servers without keys are given words such as EMPTY and none, which pass.
var placeholder = regexp.MustCompile(`(?i)^(?:<.*>|\[.*\]|your[-_ ].*(?:key|secret|token|id|password)|(?:sk-)?x{4,}|.*\*{3,}.*|sk-\.+|\.{3,}|change[-_ ]?me|undefined)$`)

// secret refuses a printed secret, and warns of the text of an example, which servers on this machine may accept.
func wantSecret(k *strict.Source, path, value, what string) {
	k.Want(value != mask, path, mask+", which stands for a secret where a configuration is printed", "%s itself", what)
	k.Advise(!placeholder.MatchString(value), path, "is the text of an example, want %s", what)
}

// id refuses a name in the place of an id: it would match no one, and lock out or let in other people than it says. Ids of DingTalk are
// printable ASCII without blanks.
func wantID(k *strict.Source, path, value, what string) {
	k.Required(path, value, what)
	named := strings.ContainsFunc(value, isNoKey) || strings.HasPrefix(value, "@")
	k.Want(value == "" || !named, path, strconv.Quote(value), "%s, not a name", what)
	k.Want(!strings.ContainsAny(value, "*,;|"), path, strconv.Quote(value), "%s: one id, without patterns", what)
}

// person warns of what looks like the id of a conversation.
func wantPerson(k *strict.Source, path, value string) {
	wantID(k, path, value, staffID)
	k.Advise(!conversationForm.MatchString(value), path, "%q looks like the id of a conversation, want %s", value, staffID)
}

// conversation warns of what looks like the id of a sender.
func wantConversation(k *strict.Source, path, value string) {
	wantID(k, path, value, conversationID)
	k.Advise(!strings.HasPrefix(value, "$:"), path, "%q looks like the id of a sender, want %s", value, conversationID)
}

var conversationForm = regexp.MustCompile(`^cid[A-Za-z0-9+/]{8,}=+$`)

// Ids of DingTalk, in the words of the errors.
const (
	staffID        = `a staff id, such as "manager4711" (the console lists them, and a refusal names the sender's)`
	conversationID = `the id of a conversation, such as "cidAbc==" (the console lists them, and a refusal names the group's)`
)

// warnOfUnset warns of variables without a value, except the credentials that a command does not need, or that are required.
func (c *Config) warnOfUnset(src *strict.Source) {
	for _, path := range src.PathsWithUnset() {
		e := c.Agent.Memory.Embeddings.BaseURL == "" && strings.HasPrefix(path, "agent.memory.embeddings.api_key")
		if e || strings.HasPrefix(withoutIndex(path), "dingtalk.client_") || strings.HasPrefix(path, "llm.models[") && strings.HasSuffix(path, "].api_key") {
			continue
		}
		for _, name := range src.Unset(path) {
			src.Warn(path, "%s is not set in the environment, and nothing stands in its place; ${%s:-} says so on purpose", name, name)
		}
	}
}

// Paths are added to an address, behind whatever it has. Errors show no user, query and fragment: keys and passwords stand there.
func wantURL(k *strict.Source, path, got string) {
	const want = "the URL of a server, as in https://host/path"
	u, err := url.Parse(got)
	switch {
	case got == "" || k.Failed(path):
		k.Required(path, got, want)
	case strings.Contains(got, "@"):
		k.Fail(path, "got a user name in the URL, want %s", want)
	case strings.Contains(got, "#"):
		k.Fail(path, "got an address with a fragment behind #, want %s", want)
	case strings.Contains(got, "?"):
		k.Fail(path, "got an address with a query behind ?, want %s; a key belongs to the field for it", want)
	default:
		k.Want(err == nil && isServer(u) && !strings.ContainsFunc(got, isBlank), path, strconv.Quote(Endpoint(got).String()), "%s", want)
	}
}

func isBlank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// hostForm has names in all scripts, and zones of IPv6. Without a name it is this machine.
var hostForm = regexp.MustCompile(`^(?:[\p{L}\p{M}\p{N}._-]*|\[[0-9A-Fa-f:.]+(?:%[^\]]+)?\])(?::[0-9]*)?$`)

func isServer(u *url.URL) bool {
	port, err := strconv.Atoi(u.Port())
	isDoubled := u.Host == "http:" || u.Host == "https:"
	return (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && hostForm.MatchString(u.Host) && !isDoubled &&
		(u.Port() == "" || err == nil && port > 0 && port <= 65535)
}

func (l *LLMConfig) check(k *strict.Source, need Need) {
	k.Want(len(l.Models) > 0, "llm.models", "none", "at least one model")
	first := map[string]int{}
	for i := range l.Models {
		path := fmt.Sprintf("llm.models[%d]", i)
		m := &l.Models[i]
		m.check(k, path, need)
		if j, twice := first[m.Name]; twice && m.Name != "" {
			k.Fail(path+".name", "got %q, which is also the name of llm.models[%d], want a name of its own", m.Name, j)
			continue
		}
		first[m.Name] = i
	}
	k.Want(currencyForm.MatchString(l.Currency), "llm.currency", strconv.Quote(l.Currency), "a code such as CNY or a sign such as ¥, at most 8 characters, or empty")
	k.Between("llm.max_concurrent", l.MaxConcurrent, 1, 10000)
	if len(l.Models) > 0 {
		k.Want(l.has(l.Default), "llm.default", strconv.Quote(l.Default), "the name of a model in llm.models: %s", l.names())
	}
}

var currencyForm = regexp.MustCompile(`^[\p{L}\p{Sc}]{0,8}$`)

func (m *ModelConfig) check(k *strict.Source, path string, need Need) {
	wantName(k, path+".name", m.Name, "a name")
	wantName(k, path+".model", m.Model, "the provider's name of the model")
	wantModelURL(k, path+".base_url", m.BaseURL.Reveal())
	if len(k.Unset(path+".api_key")) > 0 && need&NeedLLM != 0 {
		// An explicitly empty key is for endpoints without one; a named variable without a value is an oversight.
		k.Required(path+".api_key", m.APIKey.Reveal(), "the key of the endpoint")
	}
	wantCredential(k, path+".api_key", m.APIKey.Reveal(), "the key of the endpoint")
	k.Want(m.MaxOutput > 0, path+".max_output", m.MaxOutput, "more than 0")
	k.Positive(path+".timeout", m.Timeout)
	k.Positive(path+".first_token_timeout", m.FirstToken)
	if t := m.Temperature; t != nil {
		k.Want(*t >= 0 && *t <= 2, path+".temperature", *t, "0 to 2, or null")
	}
	wantParams(k, path+".params", m.Params)
	k.Want(m.PriceIn >= 0, path+".price_in", m.PriceIn, "0 or more")
	k.Want(m.PriceCached >= 0, path+".price_cached", m.PriceCached, "0 or more")
	k.Want(m.PriceOut >= 0, path+".price_out", m.PriceOut, "0 or more")
	k.Between(path+".retries", m.Retries, 0, 10)
}

func (l *LLMConfig) has(name string) bool {
	return slices.ContainsFunc(l.Models, func(m ModelConfig) bool { return m.Name == name })
}

func (l *LLMConfig) names() string {
	var names []string
	for _, m := range l.Models {
		names = append(names, strconv.Quote(m.Name))
	}
	return strings.Join(names, ", ")
}

var sessionScopes = []string{"group", "member"}

func (a *AgentConfig) check(k *strict.Source) {
	wantName(k, "agent.name", a.Name, "a name")
	k.Advise(!strings.HasPrefix(a.Name, "@"), "agent.name", "%q begins with @, which stands before the name where it is shown", a.Name)
	k.OneOf("agent.language", a.Language, []string{"zh", "en"})
	k.OneOf("agent.session_scope", a.SessionScope, sessionScopes)
	k.Between("agent.max_merged", a.MaxMerged, 1, 100)
	k.Want(a.Gather >= 0 && a.Gather <= 5*time.Second, "agent.gather", strict.DurationText(a.Gather), "0s to 5s")
	k.Want(a.BusyNote >= 0, "agent.busy_note", strict.DurationText(a.BusyNote), "0s or more")
	k.Positive("agent.stale_after", a.StaleAfter)
	k.Positive("agent.turn_timeout", a.TurnTimeout)
	a.Limits.check(k)
	a.Media.check(k)
	k.Between("agent.max_tool_rounds", a.MaxToolRounds, 1, 100)
	_, err := time.LoadLocation(a.Timezone)
	k.Want(err == nil && a.Timezone != "" && a.Timezone != "Local", "agent.timezone", strconv.Quote(a.Timezone),
		`the name of a time zone, such as "Asia/Shanghai"`)
	for i, id := range a.Admins {
		wantPerson(k, fmt.Sprintf("agent.admins[%d]", i), id)
	}
}

// Most unreadable addresses have an unescaped special character in the password.
const databaseForm = "postgres://user:password@host:5432/name, with / @ # ? of a password as %2F %40 %23 %3F" //nolint:gosec // an example

// check refuses a pooler in transaction mode without a direct address. Migrations take a lock of a connection, and notifications need
// one that stays.
func (d *DatabaseConfig) check(k *strict.Source) {
	address := func(path string, dsn DSN, otherwise string) {
		if url := dsn.Reveal(); url != "" {
			fault := sql.AddressFault(url)
			switch {
			case strings.Contains(url, ":"+mask+"@"):
				fault = mask + ", which stands for a password where a configuration is printed"
			case strings.Contains(url, "://") && strings.TrimSpace(url) != url:
				fault = "an address with blanks around it"
			}
			k.Want(fault == "", path, fault, "%s, or empty %s", databaseForm, otherwise)
		}
	}
	address("database.url", d.URL, "for a private server")
	address("database.direct_url", d.DirectURL, "where database.url leads to the server itself")
	k.OneOf("database.pooler", d.Pooler, []string{poolerNone, PoolerTransaction})
	if d.Pooler == PoolerTransaction {
		k.Want(d.URL != "", "database.url", "nothing", "the pooler's address, as database.pooler is \"transaction\"")
		k.Want(d.DirectURL != "", "database.direct_url", "nothing",
			"the address of PostgreSQL itself: migrations and notifications can't go through a pooler in transaction mode")
		k.Advise(d.URL == "" || d.DirectURL != d.URL, "database.direct_url",
			"is the same as database.url: migrations and notifications can't go through a pooler in transaction mode")
	}
	if d.URL == "" {
		k.Required("database.dir", d.Dir, "a folder for the private server's data")
		k.Want(d.DirectURL == "", "database.direct_url", "an address", "nothing, as database.url is empty")
	}
	k.Between("database.max_conns", d.MaxConns, 2, 1000)
}

// stopRest is the time of a stop besides drain and flush: the end of intake, and the cleanup.
const stopRest = 10 * time.Second

var pictureHost = regexp.MustCompile(`^(\*\.)?([A-Za-z0-9_-]+\.)*[A-Za-z0-9_-]+$`)

var replicaIDForm = regexp.MustCompile(`^[A-Za-z0-9._-]{0,63}$`)

// checkProcess judges what one process does by itself. The parts of a stop have to fit into shutdown.grace: the supervisor kills a
// longer one. The error is at the first of the three keys that the file has.
func (c *Config) checkProcess(k *strict.Source) {
	k.Want(c.Cluster.LeaseTTL >= time.Second, "cluster.lease_ttl", strict.DurationText(c.Cluster.LeaseTTL), "at least 1s")
	k.Want(replicaIDForm.MatchString(c.Cluster.ReplicaID), "cluster.replica_id", strconv.Quote(c.Cluster.ReplicaID),
		"at most 63 letters, digits, dots, dashes and underscores")
	c.Schedule.check(k)
	c.Retention.check(k)
	c.Database.check(k)
	c.Admin.check(k)
	k.Positive("shutdown.drain", c.Shutdown.Drain)
	k.Positive("shutdown.flush", c.Shutdown.Flush)
	k.Positive("shutdown.grace", c.Shutdown.Grace)
	whole := c.Shutdown.Drain + c.Shutdown.Flush + stopRest
	for _, path := range []string{"shutdown.grace", "shutdown.drain", "shutdown.flush"} {
		if k.IsGiven(path) && whole > c.Shutdown.Grace {
			k.Fail(path, "drain %s and flush %s, with %s for the rest of a stop, take longer than shutdown.grace (%s): want at least %s there, and as much of the supervisor",
				strict.DurationText(c.Shutdown.Drain), strict.DurationText(c.Shutdown.Flush), strict.DurationText(stopRest), strict.DurationText(c.Shutdown.Grace), strict.DurationText(whole))
			break
		}
	}
	k.OneOf("log.level", c.Log.Level, []string{"trace", "debug", "info", "warn", "error"})
	k.OneOf("log.format", c.Log.Format, []string{"auto", "json", "console"})
}
