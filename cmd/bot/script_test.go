package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"ebb/bot/config"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/sql/sqltest"
)

// scriptCommands are the words that scenarios are written in, besides those of testscript. `bot …` is the program's own
// command line. A question Qn, said in a chat, is answered An by the scripted model; other words get its persona.
//
//	config KEY VALUE            set a field of the replicas' config, by its path with dots; MODEL_URL and DINGTALK_URL are addresses
//	config file NAME            write the config as it is now, for a command line
//	replica start|launch NAME   start `bot serve`, and wait until it is ready, or not
//	replica term|kill NAME      SIGTERM and a clean exit, or SIGKILL
//	replica freeze|thaw NAME    SIGSTOP, SIGCONT
//	replica signal NAME SIGNAL  and go on;  replica insist NAME SIGNAL  until it ends;  replica exits NAME CODE  wait for the end
//	replica reload NAME         write the config as it is now, and SIGHUP
//	ready NAME CODE             wait until /readyz answers with the code
//	log NAME TEXT [N]           wait until the log has the text, in N lines;  ! log NAME TEXT  it has not
//	say CONV NICK MSGID TEXT    a member speaks to the bot in a group;  dm NICK MSGID TEXT  in private
//	unstaffed CONV NICK MSGID TEXT [ORGANISATION]   a frame without a staff id, of the robot's organisation or another
//	quote CONV NICK MSGID TEXT WHO ID WORDS   a person replies to a person's message;  … id ID  … picture ID  … reply TEXT  … card TEXT
//	admin NICK                  makes a member an administrator
//	shout CONV NICK MSGID LETTER KB   a message of one letter, without a break
//	acked MSGID [N]             wait for N acks with 200;  refused MSGID  wait for another;  ! acked MSGID  there was none
//	reply CONV TEXT [WITHIN]    wait for a reply with the text
//	replies CONV N [TEXT]       when all is settled, there are exactly N replies (with the text)
//	order CONV TEXT…            when all is settled, each text was replied once, in this order
//	mentions CONV TEXT NICK…    the reply with the text mentions these people alone
//	via CONV TEXT WAY           the reply with the text went by webhook or openapi
//	redeliver MSGID N [same] [everywhere]   push a message again
//	disconnect, drop [rst|fin]  end the stream, with or without a word;  online N  wait for N live connections
//	frames CONV                 the thirteen kinds of malformed frames
//	webhook fault CODE N [CONV [TEXT]] the next N calls, with the text, answer with an errcode, a status, or a named action
//	webhook forgetful           DingTalk shows a repetition again, whatever its msgUuid
//	webhook expire CONV;  token revoke;  duplicate CONV  wait until a repetition was swallowed by its msgUuid
//	violations N                the bot has broken DingTalk's protocol N times
//	model fault WHICH WHAT [N] [RETRY-AFTER]   the next N requests go wrong
//	model slow WHICH DURATION   requests are answered DURATION later
//	model hold WHICH, model release            requests are not answered until the release
//	model asked WHICH [N]       wait until N requests came;  model calls WHICH N  when all is settled, exactly N came
//	model saw TEXT              the newest chat request has the text in it;  ! model saw TEXT
//	read WHICH TEXT…            the newest request of the kind has these texts, in this order;  ! read  it has none of them
//	reached WHICH N             N results of tools are large, and each line of them stands in a request of the kind
//	raw FIRST LAST              the newest chat request shows the questions Qfirst to Qlast as people's own messages, no others
//	tool WHICH NAME JSON [N]    the next N such requests are answered by a call; $PATH is where a result was moved to
//	spare N                     the second model was asked N times
//	model types DURATION [N]    answers to questions have 20 or N sentences, with a pause of DURATION between two pieces
//	model spare                 a second model to fall back on;  model cycles N  there were N compactions, each after one flush
//	model within TOKENS         no request was larger;  model peak N  never were more than N under way at once
//	poison WORD MOST PAUSE      a replica that asks for the word is killed PAUSE later, and starts again, until the message is set aside
//	recovered GROUPS ROUND WITHIN   a crowd is answered, each once, within this time of the latest kill
//	flood CONV N                N people ask one thing each, all at once
//	pester CONV N WORD NICK OTHER MOST   N times NICK says the word and OTHER asks: OTHER is answered each time, for MOST requests
//	talk CONV N                 N messages by three people, each answered before the next; facts are among them
//	kept FILE MESSAGES PIECES   write an older bot's file: MESSAGES messages of PIECES pieces of talk
//	context below N WITHIN      wait until the context is below N tokens;  spent WITHIN  until the tokens of the day are used up
//	facts N                     N facts were said, and each is in memory or in the newest request
//	sql QUERY WANT              wait until the query gives this: columns by |, rows by ;
//	granted first|N             note the first lease of the only session, or wait until its lease was granted N times
//	postgres own|private        a server of this scenario's own, or of the bot's;  postgres stop|start|gone
//	postgres slow DURATION      each statement that comes by a "network" takes DURATION longer
//	postgres disk               the data are on a small disk of their own;  postgres full|room
//	postgres pooler [stop|start]  replicas that start from now on go through a PgBouncer, and notify each other past it
//	postgres do SQL             as a superuser;  postgres deadlock  a replica has to give in to us, who hold the outbox
//	back CONV TEXT              wait for a reply that comes soon after the latest "postgres"
//	bridged MSGID               wait for its ack; it is not refused long after the latest "postgres"
//	calm NAME LINES             for two seconds the replica writes at most LINES lines, and keeps no core busy
//	stored N                    N messages were acknowledged, and each is in the log once
//	crowd GROUPS ROUND [later|acked]  a member speaks in each of crowd0, crowd1, … at once;  answered GROUPS ROUND  each once
//	enter NICK BEGIN END [STATUS]   a person logs in to the console by DingTalk, from one replica to another;  leave NICK REPLICA
//	visit NICK REPLICA PATH WORDS…  wait for a page in the person's browser that has all words;  ! visit  it has none of them
//	secretive REPLICA           its log has no code and no state of a login
//	again                       push each message again that was not acknowledged
//	table hold NAME [WHERE]     who writes to this table, or to these rows of it, waits, until  table release
//	network via NAME            replicas that start from now on reach PostgreSQL by a network of this name;  network direct
//	network cut|mend|reset NAME  it swallows everything;  it goes on where it stood, or has forgotten what ran through it
//	skew MINUTES                PostgreSQL's clock is MINUTES ahead of all others; before any replica starts
//	variable NAME VALUE         of the environment of replicas that start from now on
//	cards                       replicas that start from now on reply on cards
//	card CONV STATE [TEXT]      wait for a card in CONV, or any, that is processing, inputting, finished or failed, and shows the text
//	opened CONV MSGID WITHIN    a card of CONV was delivered after the message, within this time of it
//	shown TEXT;  ! shown TEXT   a frame of a card, since the last "from now", has the text, or none has;  from now
//	ended CONV N                when all is settled, the conversation has N cards, and each has ended
//	whole N                     when all is settled, N typed answers were shown to their end, each once, and no card is open
//	cardfault WHICH WHAT [N]    the next N calls that create, stream or end (final) a card go wrong: a status, lost, undelivered
//	click CONV NICK ACTION [ANSWER]   a person clicks on a button of the newest card; the answer has the text
//	struck                      each fault of cards so far has happened as often as it should
//	calls left N;  calls below N   what DingTalk grants from now on;  at most N calls were counted
//	group CONV ROBOT...         a group with these robots alone
//	ask BOTS CONV NICK MSGID TEXT   a member mentions bots, by their numbers: 1, 2, or 1,2;  CONV is @NICK for a private chat
//	robot CONV TEXT BOT;  ! robot   wait for a reply of this bot with the text;  there is none
//	mark MSGID [WITHIN];  ! mark MSGID   wait for the thinking mark on a message, from when it was sent;  for its removal
//	emotion fault [recall] WHAT   the next call that sets, or removes, a mark goes wrong: a status, lost, a named action
//	marks N                     when all is settled, N marks were set, and all are removed
//	peer CONV NICK N            another bot speaks, and answers each reply, until it gets none: after N replies in CONV
//	attached CONV NAME [N]      wait for a file or a picture;  with N: when all is settled, there are exactly N of this name
//	sheet CONV NAME TEXT...     the workbook has cells with these texts, in this order
//	upload WHAT [N]             the next N uploads go wrong: a status, an errcode, a named action, or a duration;  upload expire;  messages WHAT  the next message of the open API
//	settled                     wait until nothing waits for an answer or to be sent
//
// $DINGTALK_URL, $MODEL_URL and $SCENARIO_DATABASE are addresses for command lines.
// CONV is the name of a group, or @NICK for the private chat with a member. WHICH is chat, flush, summary, or words of the request.
func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	cmds := map[string]func(*testscript.TestScript, bool, []string){}
	for name, c := range map[string]scriptCommand{
		"config": {(*world).cmdConfig, 2, 2, nil}, "replica": {(*world).cmdReplica, 2, 3, nil}, "ready": {(*world).cmdReady, 2, 2, nil},
		"log": {(*world).cmdLog, 2, 3, (*world).cmdNotLog}, "say": {(*world).cmdSay, 4, 4, nil}, "quote": {(*world).cmdQuote, 6, 99, nil}, "unstaffed": {(*world).cmdUnstaffed, 4, 5, nil}, "dm": {(*world).cmdDM, 3, 3, nil}, "form": {(*world).cmdForm, 5, 9, nil},
		"admin": {(*world).cmdAdmin, 1, 1, nil}, "shout": {(*world).cmdShout, 5, 5, nil}, "acked": {(*world).cmdAcked, 1, 2, (*world).cmdNotAcked},
		"refused": {(*world).cmdRefused, 1, 1, nil}, "reply": {(*world).cmdReply, 2, 3, nil}, "replies": {(*world).cmdReplies, 2, 3, nil},
		"order": {(*world).cmdOrder, 2, 99, nil}, "mentions": {(*world).cmdMentions, 2, 99, nil}, "via": {(*world).cmdVia, 3, 3, nil},
		"redeliver": {(*world).cmdRedeliver, 2, 4, nil}, "disconnect": {(*world).cmdDisconnect, 0, 0, nil}, "drop": {(*world).cmdDrop, 0, 1, nil},
		"online": {(*world).cmdOnline, 1, 1, nil}, "frames": {(*world).cmdFrames, 1, 1, nil}, "webhook": {(*world).cmdWebhook, 1, 5, nil},
		"token": {(*world).cmdToken, 1, 1, nil}, "duplicate": {(*world).cmdDuplicate, 1, 1, nil}, "violations": {(*world).cmdViolations, 1, 1, nil},
		"model": {(*world).cmdModel, 1, 9, (*world).cmdNotModel}, "talk": {(*world).cmdTalk, 2, 2, nil}, "flood": {(*world).cmdFlood, 2, 2, nil}, "pester": {(*world).cmdPester, 6, 6, nil}, "facts": {(*world).cmdFacts, 1, 1, nil}, "context": {(*world).cmdContext, 3, 3, nil}, "spent": {(*world).cmdSpent, 1, 1, nil}, "kept": {(*world).cmdKept, 3, 3, nil},
		"sql": {(*world).cmdSQL, 2, 2, nil}, "postgres": {(*world).cmdPostgres, 1, 2, nil}, "settled": {(*world).cmdSettled, 0, 0, nil}, "granted": {(*world).cmdGranted, 1, 1, nil},
		"network": {(*world).cmdNetwork, 1, 2, nil}, "skew": {(*world).cmdSkew, 1, 1, nil},
		"read": {(*world).cmdRead, 2, 99, (*world).cmdNotRead}, "reached": {(*world).cmdReached, 2, 2, nil}, "raw": {(*world).cmdRaw, 2, 2, nil}, "tool": {(*world).cmdTool, 3, 4, nil},
		"spare": {(*world).cmdSpare, 1, 1, nil}, "variable": {(*world).cmdVariable, 2, 2, nil}, "table": {(*world).cmdTable, 1, 3, nil},
		"again": {(*world).cmdAgain, 0, 0, nil}, "peer": {(*world).cmdPeer, 3, 3, nil},
		"cards": {(*world).cmdCards, 0, 0, nil}, "card": {(*world).cmdCard, 2, 9, nil}, "opened": {(*world).cmdCardOpened, 3, 3, nil}, "ended": {(*world).cmdCardsEnded, 2, 2, nil}, "shown": {(*world).cmdShown, 1, 1, (*world).cmdNotShown}, "from": {(*world).cmdFrom, 1, 1, nil}, "whole": {(*world).cmdWhole, 1, 1, nil},
		"cardfault": {(*world).cmdCardFault, 2, 3, nil}, "struck": {(*world).cmdStruck, 0, 0, nil}, "click": {(*world).cmdClick, 3, 4, nil}, "calls": {(*world).cmdCalls, 2, 2, nil},
		"group": {(*world).cmdGroup, 2, 9, nil}, "ask": {(*world).cmdAsk, 5, 5, nil}, "robot": {(*world).cmdRobot, 3, 3, (*world).cmdNotRobot}, "page": {(*world).cmdPage, 3, 99, nil}, "post": {(*world).cmdPost, 3, 3, nil},
		"enter": {(*world).cmdEnter, 3, 4, nil}, "leave": {(*world).cmdLeave, 2, 2, nil}, "visit": {(*world).cmdVisit, 4, 99, (*world).cmdNotVisit}, "secretive": {(*world).cmdSecretive, 1, 1, nil},
		"mark": {(*world).cmdMark, 1, 2, (*world).cmdNotMark}, "marks": {(*world).cmdMarks, 1, 1, nil}, "emotion": {(*world).cmdEmotion, 2, 3, nil},
		"back": {(*world).cmdBack, 2, 2, nil}, "bridged": {(*world).cmdBridged, 1, 1, nil}, "metric": {(*world).cmdMetric, 3, 3, nil}, "calm": {(*world).cmdCalm, 2, 2, nil}, "stored": {(*world).cmdStored, 1, 1, nil},
		"poison": {(*world).cmdPoison, 3, 3, nil}, "recovered": {(*world).cmdRecovered, 3, 3, nil},
		"picture": {(*world).cmdPicture, 4, 5, nil}, "file": {(*world).cmdFile, 4, 99, nil}, "send": {(*world).cmdSend, 5, 99, nil}, "about": {(*world).cmdAbout, 7, 9, nil},
		"download": {(*world).cmdDownload, 2, 3, nil}, "fetched": {(*world).cmdFetched, 2, 2, nil}, "fetching": {(*world).cmdFetching, 2, 2, nil}, "pictured": {(*world).cmdPictured, 2, 3, nil},
		"attached": {(*world).cmdAttached, 2, 3, nil}, "upload": {(*world).cmdUpload, 1, 3, nil}, "messages": {(*world).cmdMessages, 1, 1, nil}, "sheet": {(*world).cmdSheet, 3, 99, nil},
		"fenced": {(*world).cmdFenced, 1, 9, nil}, "batch": {(*world).cmdGroupOfPictures, 5, 5, nil}, "picturedmost": {(*world).cmdPicturedMost, 1, 1, nil},
		"crowd": {(*world).cmdFlock, 2, 3, nil}, "answered": {(*world).cmdAnswered, 2, 2, nil},
	} {
		cmds[name] = c.run
	}
	return cmds
}

// scriptCommand is one word of the language: what it does, and how many arguments it takes.
type scriptCommand struct {
	do       func(w *world, args []string) error
	min, max int
	not      func(w *world, args []string) error // behind a "!"; nil: it may not stand there
}

func (c scriptCommand) run(ts *testscript.TestScript, neg bool, args []string) {
	w := ts.Value(worldKey{}).(*world)
	if len(args) < c.min || len(args) > c.max {
		ts.Fatalf("%d arguments, want %d to %d", len(args), c.min, c.max)
	}
	do := c.do
	if neg {
		do = c.not
	}
	if do == nil {
		ts.Fatalf("this command can't be negated")
	}
	ts.Check(do(w, args))
}

// world is what a scenario plays in.
type world struct {
	t      testing.TB
	dir    string // folder of the scenario's files and of its replicas
	shared string // folder of the database servers' data
	// firstTerm is the noted term of the only session.
	firstTerm string
	files     map[string]sentFile // on DingTalk's server, by the scenario's names
	ding      *dingtalktest.Server
	main      *scriptModel
	spare     *scriptModel // nil without one
	url       string       // database
	db        postgres
	holder    *pgx.Conn // connection that locks a table for the scenario; nil for none
	config    map[string]any
	env       []string // more environment variables of replicas

	reader   *pgx.Conn // the connection for queries; nil before the first
	readerOf string    // its address

	networks     map[string]*sqltest.Link
	replicas     map[string]*replica
	browsers     map[string]*scriptBrowser  // by nick
	consoleLogin *http.Cookie               // nil before the first page
	secrets      []string                   // codes and states of logins
	people       map[string]string          // nick -> staff id
	said         int                        // questions of talk so far
	cardFaults   map[int]dingtalktest.Fault // by id
	facts        []string
	framesFrom   int       // "shown" looks at frames of the transcript behind it
	killed       time.Time // the latest "replica kill"
}

type worldKey struct{}

// patience bounds each wait. Waits end as soon as what they wait for is there; a machine under load may need long.
const patience = 40 * time.Second

func setUp(env *testscript.Env) error {
	t := env.T().(testing.TB)
	opts := dingtalktest.Fast()
	opts.Routing = dingtalktest.RouteRoundRobin
	opts.WebhookPerMinute = dingtalktest.Unlimited // scenarios say many things in a short time
	opts.OpensPerMinute = 120
	opts.CardTemplates = scriptTemplates
	opts.Apps = []dingtalktest.App{
		{ClientID: "dingsimapp0001", ClientSecret: "sim-secret", RedirectURIs: []string{publicConsole + config.LoginPath}},
		{ClientID: scriptRobot("2"), ClientSecret: "sim-secret-2"}, // it is in no group unless a scenario says so
		{ClientID: scriptRobot("3"), ClientSecret: "sim-secret-3"},
	}
	ding, err := dingtalktest.Start(opts)
	if err != nil {
		return err
	}
	w := &world{
		t: t, dir: env.WorkDir, shared: sharedDir(t), ding: ding, url: sqltest.URL(t),
		replicas: map[string]*replica{}, browsers: map[string]*scriptBrowser{}, people: map[string]string{}, networks: map[string]*sqltest.Link{},
		cardFaults: map[int]dingtalktest.Fault{},
	}
	w.main = startModel()
	w.config = w.newConfig()
	env.Values[worldKey{}] = w
	env.Setenv("DINGTALK_URL", ding.URL)
	env.Setenv("MODEL_URL", w.main.URL)
	env.Setenv("SCENARIO_DATABASE", w.url)
	env.Defer(w.tearDown)
	return nil
}

// tearDown ends everything, and checks the laws of every scenario: no request that a provider would refuse, no panic,
// no data race, no log line with a fact twice.
func (w *world) tearDown() {
	if err := w.letTableGo(); err != nil {
		w.t.Error(err)
	}
	for _, name := range w.names() {
		r := w.replicas[name]
		r.kill()
		for _, bad := range []string{"DATA RACE", "panic:", "panicked", "fatal error:"} {
			if text := r.log(); strings.Contains(text, bad) {
				w.t.Errorf("the log of replica %s has %q", name, bad)
			}
		}
		w.checkFacts(r)
	}
	for _, m := range []*scriptModel{w.main, w.spare} {
		if m != nil {
			m.close()
			for _, bad := range m.Illegal() {
				w.t.Errorf("no provider would have taken this: %s", bad)
			}
		}
	}
	if w.t.Failed() {
		w.dump()
	}
	w.closeReader()
	for _, n := range w.networks {
		n.Close()
	}
	w.ding.Close()
	if err := w.endPostgres(); err != nil {
		w.t.Error(err)
	}
}

// The length of a failed scenario's logs.
const (
	shownLog        = 60
	shownTranscript = 120
)

func (w *world) dump() {
	for _, name := range w.names() {
		w.t.Logf("--- end of the log of replica %s\n%s", name, lastLines(w.replicas[name].log(), shownLog))
	}
	var lines []string
	for _, e := range w.ding.Transcript() {
		if e.Kind != "ping" {
			lines = append(lines, e.String())
		}
	}
	w.t.Logf("--- end of DingTalk's transcript\n%s", lastLines(strings.Join(lines, "\n"), shownTranscript))
	for _, v := range w.ding.Violations() {
		w.t.Logf("violation: %s", v)
	}
	lines = nil
	for _, r := range w.main.Requests() {
		lines = append(lines, fmt.Sprintf("%s %-7s %q", r.At.Format("15:04:05.000"), r.Kind, clipped(askedIn(r))))
	}
	w.t.Logf("--- end of what the model was asked\n%s", lastLines(strings.Join(lines, "\n"), shownLog))
}

func (w *world) names() []string {
	var names []string
	for name := range w.replicas {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// until polls until look says that it is so, or patience is at its end; look also says how things are.
func (w *world) until(what string, within time.Duration, look func() (ok bool, now string)) error {
	deadline := time.Now().Add(within)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, now := look()
		switch {
		case ok:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("waited %s for %s; now: %s", within, what, now)
		}
		<-tick.C
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func clipped(text string) string {
	if r := []rune(text); len(r) > 100 {
		return string(r[:100]) + "…"
	}
	return text
}
