package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/cmd/lab/rig"
)

// Few groups where each of their members has a session, so that each session grows long.
const (
	groupPrefix        = "cid-chaos-"
	chaosConversations = 14
	chaosMemberGroups  = 3
)

func newChaosTalk(ctx context.Context, sim *dingtalktest.Server, rng *rand.Rand, noisy, member bool) *talkers {
	t := &talkers{people: chaosPeople, sim: sim, rng: rng, noisy: noisy, member: member, said: map[string]*remark{}}
	t.close = rig.FollowTranscript(context.WithoutCancel(ctx), sim, t.noteEntry)
	return t
}

// noteEntry notes acknowledgements and answers.
func (t *talkers) noteEntry(e dingtalktest.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.said[e.MsgID]
	switch {
	case e.Kind == "ack" && e.Status == 200 && u != nil && u.acked.IsZero():
		u.acked = e.Time
		t.open--
	case e.Kind == "push" && u != nil && u.pushed.IsZero():
		u.pushed = e.Time
	case e.Kind == "fault" && (e.Route == dingtalktest.RouteDownload || e.Route == dingtalktest.RouteFile):
		t.spoiled = append(t.spoiled, e.Time)
	case e.Kind == "card":
		for _, mark := range rig.MarkPattern.FindAllString(e.Detail, -1) {
			if u := t.said[mark]; u != nil && u.wordedAt.IsZero() {
				u.wordedAt = e.Time
			}
		}
	case e.Kind == "reply":
		for _, mark := range rig.MarkPattern.FindAllString(e.Detail, -1) {
			if u := t.said[mark]; u != nil && !u.pushed.IsZero() && u.answeredAt.IsZero() {
				t.took = append(t.took, e.Time.Sub(u.pushed))
				u.answeredAt = e.Time
			}
		}
	}
}

func (t *talkers) countUnacked() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open
}

func (t *talkers) copySpoiled() []time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]time.Time(nil), t.spoiled...)
}

func (t *talkers) copyAll() (said map[string]remark, took []time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	said = make(map[string]remark, len(t.said))
	for mark, u := range t.said {
		said[mark] = *u
	}
	return said, append([]time.Duration(nil), t.took...)
}

// talkUntilDone sends messages at random moments, rate a second on average, until ctx ends.
func (t *talkers) talkUntilDone(ctx context.Context, rate float64) {
	for {
		t.mu.Lock()
		pause := t.rng.ExpFloat64() / rate
		t.mu.Unlock()
		if !rig.WaitUntil(ctx, time.Now().Add(time.Duration(pause*float64(time.Second)))) {
			return
		}
		t.sayNext()
	}
}

var chaosPeople = []rig.Person{rig.Zhang, rig.Li, rig.Alex, {ID: "u-wang", Name: "王芳"}, {ID: "u-chen", Name: "陈晨"}}

var chaosAdmin = rig.Zhang

var chaosCommands = []string{"/状态", "/压缩", "/status", "/compact", "/压缩记录"}

// Words of facts. No two facts are alike, or one would be taken for the other's correction.
var (
	chaosThings = []string{"订单库", "缓存集群", "日志平台", "支付网关", "对账脚本", "搜索服务", "消息队列", "监控看板", "登录页", "发布流水线", "风控引擎"}
	chaosPlaces = []string{"杭州机房", "三号机柜", "新加坡区", "备用链路", "灰度分组", "内网网段", "二期集群", "边缘节点", "测试大厅"}
	chaosDeeds  = []string{"由李娜值守", "每周三凌晨备份", "保留九十天", "限流八百", "走专线", "双人复核", "迁移到新盘"}
)

func (t *talkers) sayNext() {
	t.mu.Lock()
	u, m := t.drawMessage()
	u.sent = time.Now()
	t.said[u.mark], t.order = u, append(t.order, u.mark)
	t.open++
	t.mu.Unlock()
	t.sim.Say(m)
}

// drawMessage needs t.mu.
func (t *talkers) drawMessage() (*remark, dingtalktest.Message) {
	n := len(t.order) + 1
	mark := fmt.Sprintf("q%07d", n)
	who := t.people[t.rng.IntN(len(t.people))]
	command := t.noisy && n%40 == 7
	if command {
		who = chaosAdmin
	}
	m := dingtalktest.Message{MsgID: mark, Sender: who.ID, SenderNick: who.Name, Direct: t.rng.IntN(8) == 0}
	u := &remark{mark: mark, who: who.ID, command: command}
	switch {
	case m.Direct:
		u.place = dingtalktest.DirectConversation(who.ID)
		u.thread = u.place
	case t.member:
		m.Conversation = fmt.Sprintf(groupPrefix+"%02d", t.rng.IntN(chaosMemberGroups))
		u.place, u.thread = m.Conversation, m.Conversation+" "+who.ID
	default:
		m.Conversation = fmt.Sprintf(groupPrefix+"%02d", t.rng.IntN(chaosConversations))
		u.place, u.thread = m.Conversation, m.Conversation
	}
	switch {
	case command:
		m.Text = chaosCommands[t.rng.IntN(len(chaosCommands))]
	case n%6 == 0:
		m.Text = u.factText()
	default:
		m.Text = talkText(u)
	}
	if t.noisy && !command {
		t.roughenMessage(&m)
	}
	return u, m
}

// roughenMessage makes a few messages long or copies them. t.mu must be held.
func (t *talkers) roughenMessage(m *dingtalktest.Message) {
	switch t.rng.IntN(60) {
	case 0, 1:
		m.Copies = 3
	case 2:
		m.Text += strings.Repeat("日志一切正常，", 300)
	case 3:
		m.Text += strings.Repeat("A", 40_000)
	}
}

func (t *talkers) someMarks(n int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ids []string
	for range min(n, len(t.order)) {
		ids = append(ids, t.order[t.rng.IntN(len(t.order))])
	}
	return ids
}

// threadOf is the session of messages, by their marks.
func (t *talkers) threadOf(asked string) string {
	mark, _, _ := strings.Cut(asked, " ")
	t.mu.Lock()
	defer t.mu.Unlock()
	if u := t.said[mark]; u != nil {
		return u.thread
	}
	return ""
}
