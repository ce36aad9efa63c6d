package bot_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/bot/view"
	"ebb/memory"
	"ebb/memory/draft"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sql/sqltest"
)

// room is a conversation with the bot.
type room struct {
	id     sessions.ConversationID
	kind   sessions.ConversationType
	people []string
	length int // messages
}

var rooms = [...]room{
	roomA:     {id: "qa", kind: sessions.Group, people: []string{"王芳", "李雷", "Alice", "Bob"}, length: 1500},
	roomB:     {id: "qb", kind: sessions.Group, people: []string{"赵敏", "Bob", "Dave"}, length: 1300},
	roomAlice: {id: "qalice", kind: sessions.Private, people: []string{"Alice"}, length: 500},
	roomWang:  {id: "qwang", kind: sessions.Private, people: []string{"王芳"}, length: 500},
}

func (r room) key() sessions.Key { return sessions.NewKey("robot", r.id, "") }

func (r room) message(id, who, words string) sessions.Message {
	m := bottest.Said(id, who, words)
	m.ConversationID, m.ConversationType, m.ConversationTitle = r.id, r.kind, string(r.id)
	return m
}

// vague is as bad a summary as may pass: it has the subjects of the talk, and none of the facts.
const vague = "## State 状态\nThe team talked about services, releases and documents for a while. 大家聊了服务、发布和文档，也有人闲聊天气和午饭。" +
	"Several owners and dates were named and some of them changed later. 有些安排后来又改了，细节以聊天记录为准。" +
	"Open: a few questions about monitoring and the meeting room have no answer yet. 监控告警和会议室的问题还没有结论。"

// stage is the talk with a bot on PostgreSQL, and a scripted model.
type stage struct {
	*place
	*replica

	plants []plant
	mu     sync.Mutex
	known  map[string]source // facts by their words
	saved  map[int]int       // how many tellings of a plant were
	missed []string          // facts that the model had no room to save
	asked  []llm.Message     // the last probe's request
	as     memory.Reader     // reader of the last probe
}

// source is a telling of a plant.
type source struct{ plant, nth int }

// newStage starts a bot with the product's own settings of memory, in a window in which a talk of a few dozen messages
// is compacted.
func newStage(t *testing.T, extract func(context.Context, llm.Request) (llm.Response, error)) *stage {
	t.Helper()
	s := &stage{plants: plants(), known: map[string]source{}, saved: map[int]int{}}
	for i, p := range s.plants {
		for n, sources := range p.statements {
			s.known[sources.said] = source{i, n}
		}
	}
	settings := bottest.SmallSettings
	settings.Window.Threshold = 3000
	s.place = &place{t: t, url: sqltest.URL(t), talk: dialogue{settings: settings}, facts: &atomic.Int64{}}
	s.replica = s.run("quality", func(r *replica, c *bot.Config) {
		r.model.Chat, r.model.Flush = s.chat, s.extract
		if extract != nil {
			r.model.Flush = extract
		}
		r.model.Summary = func(context.Context, llm.Request) (llm.Response, error) { return bottest.Text(vague), nil }
		c.Tidying, c.Index = r.store.FactUpkeep, r.store.Index
		c.TurnTimeout, c.CompactDeadline = patience, patience
		c.Remember = view.Remember{Recall: view.RecallQuestions, RecallTokens: 800, PinnedTokens: 600, MaxPerScope: 500}
		c.Tools = []chat.Tool{
			bottest.HandTool{Name: "look", Reads: true, F: func(_ context.Context, in chat.ToolInput) (string, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.as = in.Reader
				return "looked", nil
			}},
			bottest.HandTool{Name: "fetch", Reads: true, F: func(context.Context, chat.ToolInput) (string, error) {
				return poison.fetched + "\n" + poison.forwarded, nil
			}},
		}
	})
	return s
}

// probing is what has the model look at what it is shown.
const probing = "现在看得到什么 look around"

func (s *stage) chat(ctx context.Context, r llm.Request) (llm.Response, error) {
	if last := r.Messages[len(r.Messages)-1]; last.Role == "user" && strings.Contains(last.Content, probing) {
		s.mu.Lock()
		s.asked = r.Messages
		s.mu.Unlock()
		return bottest.Calls(sessions.ToolCall{ID: "look", Name: "look", Arguments: "{}"}), nil
	}
	return chatOfTest(ctx, r)
}

// shown is a transcript's line.
type shown struct {
	Text string `json:"text"`
	Who  string `json:"who"`
}

// transcriptLines lists the lines of a flush's transcript. A line without a name continues the last speaker's.
func transcriptLines(r llm.Request) []shown {
	var lines []shown
	for line := range strings.Lines(bottest.LastWords(r)) {
		var l shown
		if strings.HasPrefix(line, `{"n":`) && json.Unmarshal([]byte(line), &l) == nil {
			lines = append(lines, l)
		}
	}
	return lines
}

var knownRE = regexp.MustCompile(`(?m)^- \[#(\d+)\] (.*)$`)

// extract answers a flush like a model that finds every fact. It uses words of its own, and the number of a corrected
// fact where that is shown to it.
func (s *stage) extract(_ context.Context, r llm.Request) (llm.Response, error) {
	numbers := map[string]int64{}
	for _, m := range knownRE.FindAllStringSubmatch(bottest.LastWords(r), -1) {
		numbers[m[2]], _ = strconv.ParseInt(m[1], 10, 64)
	}
	facts, sources := []memory.Fact{}, []source{}
	for _, l := range transcriptLines(r) {
		src, ok := s.known[l.Text]
		if !ok {
			continue
		}
		p := s.plants[src.plant]
		now := p.statements[src.nth]
		f := memory.Fact{Content: now.content, Kind: now.kind, Key: now.key, Subject: now.subject, By: l.Who}
		if now.replaces {
			before := source{src.plant, src.nth - 1}
			if at := slices.Index(sources, before); at >= 0 { // it has no number yet, and is not worth saving any more
				facts[at], sources[at] = f, src
				continue
			}
			f.Replaces = numbers[p.statements[before.nth].content]
		}
		facts, sources = append(facts, f), append(sources, src)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, src := range sources {
		if s.saved[src.plant]++; i >= draft.MaxFacts {
			s.missed = append(s.missed, facts[i].Content)
		}
	}
	return saving(map[string]any{"facts": facts, "nothing_to_save": len(facts) == 0}), nil
}

// saving is a call of memory_save.
func saving(arguments any) llm.Response {
	args, err := json.Marshal(arguments)
	if err != nil {
		panic(err)
	}
	return bottest.Calls(sessions.ToolCall{ID: "f1", Name: draft.SaveTool, Arguments: string(args)})
}

// line is a message of a person.
type line struct{ who, words string }

// scripts are the messages of each room: idle talk, with the facts strewn over its first three quarters. Each
// correction follows some time after its fact.
func (s *stage) scripts() [len(rooms)][]line {
	rng := rand.New(rand.NewPCG(4, 100))
	var all [len(rooms)][]line
	for at, room := range rooms {
		lines := make([]line, room.length)
		free := func(from, to int) int {
			for {
				if i := from + rng.IntN(to-from); lines[i].words == "" {
					return i
				}
			}
		}
		for n, p := range s.plants {
			if p.room != at {
				continue
			}
			i := free(0, room.length/2)
			for k, sources := range p.statements {
				who := p.by
				if who == "" {
					who = room.people[rng.IntN(len(room.people))]
				}
				if k > 0 { // some at once, some after compactions
					i = free(i+1, i+1+[]int{6, room.length / 4}[(n+k)%2])
				}
				lines[i] = line{who, sources.said}
			}
		}
		things := s.things(at)
		for i := range lines {
			if lines[i].words == "" {
				lines[i] = line{room.people[rng.IntN(len(room.people))], idle(rng, room.kind, things)}
			}
		}
		all[at] = lines
	}
	return all
}

// things are what the facts of a room are about.
func (s *stage) things(room int) []string {
	out := []string{"wiki", "打印机", "CI", "测试环境"}
	for _, p := range s.plants {
		if p.room == room && p.about != "" {
			out = append(out, p.about)
		}
	}
	return out
}

var idleWords = []string{
	"%s 那边的监控今天又响了 %d 次，谁看一下", "早上 %s 的评审大概 %d 分钟", "%s 的日志太多了，一小时 %d 兆", "昨天 %s 慢了 %d 毫秒，不像是网络",
	"有人在看 %s 吗，还差 %d 个用例", "%s 的文档少了第 %d 节", "我重启了 %s，第 %d 次了", "谁知道 %s 的端口和负责人，问了 %d 个人都不知道？",
	"%s 今天合了 %d 个分支", "%s 的周会挪到 %d 号会议室",
	"anyone looking at %s? %d alerts since breakfast", "restarted %s after %d timeouts", "the %s dashboard is %d minutes behind again",
	"who owns %s these days? I asked %d people", "the review of %s took %d minutes, far too long", "%s dropped %d requests overnight, nothing bad",
	"there are %d open tickets for %s", "merged %d branches of %s this morning", "does %s have a runbook? I found %d dead links",
}

var idlePrivate = []string{
	"帮我把 %s 的说明翻成英文，大概 %d 字", "%s 的报错是什么意思，出现了 %d 次", "写一段关于 %s 的介绍，%d 字左右", "%s 的表格怎么按 %d 列排序",
	"please shorten this note about %s to %d words", "what does the %s error %d mean?", "draft a polite reply about %s in %d lines", "compare two ways to set up %s, %d points",
}

var idleShort = []string{"好的", "收到", "哈哈", "辛苦了", "稍等", "thanks!", "ok", "on it", "+1", "sounds good", "午饭吃什么", "下雨了，记得带伞"}

// idle is talk that holds no fact, though it names what facts are about.
func idle(rng *rand.Rand, kind sessions.ConversationType, things []string) string {
	words := idleWords
	if kind == sessions.Private {
		words = idlePrivate
	}
	if rng.IntN(4) == 0 {
		return idleShort[rng.IntN(len(idleShort))]
	}
	form, thing, n := words[rng.IntN(len(words))], things[rng.IntN(len(things))], 2+rng.IntN(900)
	if strings.Index(form, "%d") < strings.Index(form, "%s") {
		return fmt.Sprintf(form, n, thing)
	}
	return fmt.Sprintf(form, thing, n)
}

// talkRounds is how often the bot gets to rest while everybody talks at once.
const talkRounds = 100

// hold lets everybody talk.
func (s *stage) hold(scripts [len(rooms)][]line) {
	s.place.t.Helper()
	for round := range talkRounds {
		for at, lines := range scripts {
			from, to := len(lines)*round/talkRounds, len(lines)*(round+1)/talkRounds
			for i := from; i < to; i++ {
				s.post(rooms[at].message(fmt.Sprintf("q%d-%d", at, i), lines[i].who, lines[i].words))
			}
		}
		s.settle()
	}
}

// probe has a person in a room ask the bot a question. It returns the model's view and the reader of its tools.
func (s *stage) probe(at int) (view string, reader memory.Reader) {
	s.place.t.Helper()
	s.post(rooms[at].message(fmt.Sprintf("probe%d", at), rooms[at].people[0], probing))
	s.settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.as.Key != rooms[at].key() {
		s.place.t.Fatalf("the probe of room %d was answered for %s", at, s.as.Key)
	}
	var b strings.Builder
	for _, m := range s.asked {
		b.WriteString(m.Content + "\n")
	}
	return b.String(), s.as
}

// saidAt is when a message was said, by the log.
func (s *stage) saidAt(at int, words string) time.Time {
	return one[time.Time](s.place.t, s.db(), `SELECT created_at FROM dingtalk_session_events WHERE session_key = $1 AND content = $2`,
		rooms[at].key(), words).UTC()
}

// answer is what a text has to hold to answer a plant's questions by one of its tellings.
func (s *stage) answer(p plant, t statement) []string {
	value := t.value
	if t.day != nil {
		value = t.day(s.saidAt(p.room, t.said)).Format(time.DateOnly)
	}
	return slices.DeleteFunc([]string{p.about, value}, func(w string) bool { return w == "" })
}

// holds reports whether a text holds all of words.
func holds(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}
