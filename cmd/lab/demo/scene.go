package demo

import (
	"slices"
	"time"
)

type scene struct {
	Elapsed   time.Duration
	Caption   string
	Tokens    int // the group's next request
	FlushAt   int // tokens
	Threshold int // tokens; 0: unknown
	Said      []spokenLine
	Happened  []sceneAction
	Replicas  []replicaState
	Counts    storyCounts
	Table     []tableRow // nil before the end
	Result    string
}

// lineOfCard is -1 without a line.
func (c *scene) lineOfCard(id string) int {
	return slices.IndexFunc(c.Said, func(l spokenLine) bool { return l.Card == id })
}

type spokenLine struct {
	Who  string
	Text string
	Bot  bool
	Card string // empty: a message
	Open bool
	Mark string // rating
}

type sceneAction struct {
	Text    string
	Details []string
}

type replicaState struct {
	Name  string
	PID   int
	State string // 启动 starting, 运行 running, …
	Alive bool
}

type storyCounts struct {
	Acked       int
	Answered    int
	Doubled     int // with more than one reply
	Flushes     int
	Compactions int
	Memories    int
	OpenCards   int
	Violations  int // breaches of DingTalk's protocol, as the simulator saw them
	Illegal     int // requests that no model provider would take
}

func (c storyCounts) unanswered() int { return c.Acked - c.Answered }

type tableRow struct {
	Label string
	Value string
	Good  bool
}

// Unanswered messages count as lost.
func closingTable(c storyCounts) []tableRow {
	row := func(label string, n int, good bool) tableRow { return tableRow{label, withCommas(n), good} }
	return []tableRow{
		row("消息已确认 messages acknowledged", c.Acked, c.Acked > 0),
		row("已回答 answered", c.Answered, c.Answered == c.Acked),
		row("丢失 lost", c.unanswered(), c.unanswered() == 0),
		row("重复回答 answered twice", c.Doubled, c.Doubled == 0),
		row("记忆整理 memory flushes", c.Flushes, c.Flushes > 0),
		row("压缩 compactions", c.Compactions, c.Compactions > 0),
		row("记忆条目 memories", c.Memories, c.Memories > 0),
		row("未结束的卡片 cards left unfinished", c.OpenCards, c.OpenCards == 0),
		row("钉钉协议违规 protocol violations", c.Violations, c.Violations == 0),
		row("不合法的模型请求 illegal model requests", c.Illegal, c.Illegal == 0),
	}
}
