package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
)

// chaosTalk is people who talk in groups, and what DingTalk knows of each of their messages.
type chaosTalk struct {
	sim   *dingtalktest.Server
	stop  context.CancelFunc
	ended chan struct{}
	noisy bool // bursts, copies and long messages too

	mu    sync.Mutex
	rng   *rand.Rand
	said  []string             // marks, in the order in which they were said; they are the messages' ids too
	place map[string]string    // of a mark: its conversation
	fact  map[string]string    // of a mark: what it says that is to be remembered
	acked map[string]time.Time // acknowledged with 200
	open  int                  // said and not acknowledged
	first map[string]time.Time // pushed
	done  map[string]bool      // answered
	took  []time.Duration      // from the first push of a message to its first answer
}

const chaosConversations = 14

func newChaosTalk(ctx context.Context, sim *dingtalktest.Server, rng *rand.Rand, noisy bool) *chaosTalk {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	t := &chaosTalk{
		sim: sim, rng: rng, noisy: noisy, stop: stop, ended: make(chan struct{}),
		place: map[string]string{}, fact: map[string]string{}, acked: map[string]time.Time{}, first: map[string]time.Time{},
		done: map[string]bool{},
	}
	go func() {
		defer close(t.ended)
		_, _ = sim.WaitEntry(ctx, "the end of the talk", func(e dingtalktest.Entry) bool { t.note(e); return false })
	}()
	return t
}

func (t *chaosTalk) close() {
	t.stop()
	<-t.ended
}

// note takes from the transcript what was acknowledged, and when a message was answered.
func (t *chaosTalk) note(e dingtalktest.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case e.Kind == "ack" && e.Status == 200 && t.place[e.MsgID] != "" && t.acked[e.MsgID].IsZero():
		t.acked[e.MsgID] = e.Time
		t.open--
	case e.Kind == "push" && t.place[e.MsgID] != "" && t.first[e.MsgID].IsZero():
		t.first[e.MsgID] = e.Time
	case e.Kind == "reply":
		for _, mark := range marks.FindAllString(e.Detail, -1) {
			if at := t.first[mark]; !at.IsZero() && !t.done[mark] {
				t.took = append(t.took, e.Time.Sub(at))
				t.done[mark] = true
			}
		}
	}
}

// owed is the number of messages that DingTalk has no 200 for.
func (t *chaosTalk) owed() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open
}

// run says something rate times a second, at random moments, until ctx ends.
func (t *chaosTalk) run(ctx context.Context, rate float64) {
	for {
		t.mu.Lock()
		pause := t.rng.ExpFloat64() / rate
		t.mu.Unlock()
		if !until(ctx, time.Now().Add(time.Duration(pause*float64(time.Second)))) {
			return
		}
		t.say()
	}
}

var chaosPeople = []person{zhang, li, alex, {"u-wang", "王芳"}, {"u-chen", "陈晨"}}

// Words that facts are made of: no two of them look alike, or one would be taken for the other's correction.
var (
	chaosThings = []string{"订单库", "缓存集群", "日志平台", "支付网关", "对账脚本", "搜索服务", "消息队列", "监控看板", "登录页", "发布流水线", "风控引擎"}
	chaosPlaces = []string{"杭州机房", "三号机柜", "新加坡区", "备用链路", "灰度分组", "内网网段", "二期集群", "边缘节点", "测试大厅"}
	chaosDeeds  = []string{"由李娜值守", "每周三凌晨备份", "保留九十天", "限流八百", "走专线", "双人复核", "迁移到新盘"}
)

// say says one message somewhere.
func (t *chaosTalk) say() {
	t.mu.Lock()
	n := len(t.said) + 1
	mark := fmt.Sprintf("q%07d", n)
	m := dingtalktest.Message{MsgID: mark, Conversation: fmt.Sprintf("cid-chaos-%02d", t.rng.IntN(chaosConversations))}
	p := chaosPeople[t.rng.IntN(len(chaosPeople))]
	m.Sender, m.SenderNick = p.id, p.name
	m.Text = mark + " 请问发布窗口和回滚负责人是谁？压测报告放在哪里了"
	if n%6 == 0 {
		t.fact[mark] = fmt.Sprintf("编号K%06d：%s在%s%s", n, chaosThings[n%11], chaosPlaces[n%9], chaosDeeds[n%7])
		m.Text = mark + " 通知大家，" + t.fact[mark] + "。"
	}
	if t.noisy {
		switch t.rng.IntN(60) {
		case 0, 1:
			m.Copies = 3
		case 2:
			m.Text += strings.Repeat("日志一切正常，", 300)
		case 3:
			m.Text += strings.Repeat("A", 40_000)
		}
	}
	t.said, t.place[mark] = append(t.said, mark), m.Conversation
	t.open++
	t.mu.Unlock()
	t.sim.Say(m)
}

// some are a few of the messages said so far.
func (t *chaosTalk) some(n int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ids []string
	for range min(n, len(t.said)) {
		ids = append(ids, t.said[t.rng.IntN(len(t.said))])
	}
	return ids
}

// placeOf is where the messages with these marks were said.
func (t *chaosTalk) placeOf(asked string) string {
	mark, _, _ := strings.Cut(asked, " ")
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.place[mark]
}
