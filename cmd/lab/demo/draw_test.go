package demo

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// sampleScene is a moment of the rolling restart.
func sampleScene() scene {
	return scene{
		Elapsed: 23 * time.Second, Caption: "滚动重启：B 上线，A 收到 SIGTERM · rolling restart",
		Tokens: 2861, FlushAt: 3600, Threshold: 4000,
		Said: []spokenLine{
			{Who: "李娜", Text: "已经看不见的一句"},
			{Who: "李娜", Text: "请问支付网关的发布日期定在哪天？"},
			{Who: "Ebb", Text: "@李娜 记忆里有：张伟：大家好，支付网关 2.4 的发布日期定在 5 月 20 日晚上八点，窗口两小时。", Bot: true},
			{Who: "张伟", Text: "灰度定在 5 月 19 日上午十点，\n先放 5% 的流量。"},
			{Who: "一个名字很长的人", Text: "ok"},
		},
		Happened: []sceneAction{
			{Text: "记忆整理 memory flush：3,797 tokens 时存下 4 条 facts saved", Details: []string{"[task] 李娜：这次发布由我李娜负责"}},
			{Text: "压缩 compaction：4,202 → 2,672 tokens", Details: []string{"第 1–18 条进了摘要"}},
			{Text: "A 收到 SIGTERM，还有 1 轮在答"},
		},
		Replicas: []replicaState{{Name: "A", State: "收尾 draining", Alive: true}, {Name: "B", State: "运行 running", Alive: true}},
		Counts:   storyCounts{Acked: 18, Answered: 17, Flushes: 1, Compactions: 1, Memories: 4},
	}
}

const sampleScreen = `
Ebb · 不忘事的钉钉群机器人 · demo                                          23 s
真的：网关进程、PostgreSQL、信号。替身：钉钉是模拟器，模型照脚本答话，非大模型
Real: gateways, PostgreSQL, signals. Simulated: DingTalk. Scripted: the model.

▶ 滚动重启：B 上线，A 收到 SIGTERM · rolling restart

上下文 context  2,861 / 4,000 tokens  71%                     100% 压缩 compact
███████████████████████████████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                             整理记忆 flush 90% ▲      ▲ 100%
── 群聊 group: 支付网关 2.4 发布 ──────────────────────────────────────────────
李娜    请问支付网关的发布日期定在哪天？
Ebb     @李娜 记忆里有：张伟：大家好，支付网关 2.4 的发布日期定在 5 月 20 日晚…
张伟    灰度定在 5 月 19 日上午十点， 先放 5% 的流量。
一个名… ok
── 发生了什么 what happened ───────────────────────────────────────────────────
● 记忆整理 memory flush：3,797 tokens 时存下 4 条 facts saved
   [task] 李娜：这次发布由我李娜负责
● 压缩 compaction：4,202 → 2,672 tokens
   第 1–18 条进了摘要
● A 收到 SIGTERM，还有 1 轮在答
── 网关进程 gateways: ● A 收尾 draining  ● B 运行 running ─────────────────────
已确认 acked 18 · 已答 answered 17 · 待答 waiting 1 · 重复 doubled 0
整理 flushes 1 · 压缩 compactions 1 · 记忆 memories 4 · 违规 violations 0
`

func TestRenderScreen(t *testing.T) {
	t.Parallel()
	got := "\n" + strings.Join(renderScene(sampleScene(), 80, 24, newPalette(false)), "\n") + "\n"
	for i, line := range strings.Split(got, "\n") {
		want := strings.Split(sampleScreen+"\n", "\n")
		if i >= len(want) || strings.TrimRight(line, " ") != want[i] {
			t.Fatalf("line %d differs; got%s\nwant%s", i, got, sampleScreen)
		}
	}
}

var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// For any scene and terminal, the drawing stays inside it, and colour changes nothing but colour.
func TestRenderStaysInside(t *testing.T) {
	t.Parallel()
	full := sampleScene()
	full.Said = append(full.Said, spokenLine{Who: strings.Repeat("名", 90), Text: strings.Repeat("字word 👩‍👩‍👧 é", 60)})
	full.Happened = append(full.Happened, sceneAction{Text: strings.Repeat("很长 ", 99), Details: strings.Split(strings.Repeat("一行 a line,", 30), ",")})
	full.Tokens = 99_999
	ended := full
	ended.Table, ended.Result = closingTable(storyCounts{Acked: 3, Answered: 2, Doubled: 1}), strings.Repeat("结论", 80)
	filling, filled := full, full
	filling.Said = append(slices.Clone(full.Said), spokenLine{Who: "Ebb", Text: strings.Repeat("字word 👩‍👩‍👧 é", 90), Bot: true, Card: "c", Open: true})
	filled.Said = append(slices.Clone(full.Said), spokenLine{Who: "Ebb", Text: strings.Repeat("字word 👩‍👩‍👧 é", 90), Bot: true, Card: "c", Mark: "👍"})
	for name, s := range map[string]scene{
		"empty": {}, "sample": sampleScene(), "full": full, "ended": ended, "filling": filling, "filled": filled,
	} {
		for _, size := range [][2]int{{60, 24}, {61, 25}, {80, 24}, {99, 30}, {100, 40}, {240, 70}} {
			lines := renderScene(s, size[0], size[1], newPalette(false))
			if len(lines) >= size[1] {
				t.Errorf("%s at %v: %d lines, want fewer than %d", name, size, len(lines), size[1])
			}
			for i, l := range lines {
				if w := cells.StringWidth(l); w >= size[0] || strings.ContainsAny(l, "\n\r") {
					t.Errorf("%s at %v: line %d has %d columns: %q", name, size, i, w, l)
				}
			}
			colored := strings.Join(renderScene(s, size[0], size[1], newPalette(true)), "\n")
			if sgr.ReplaceAllString(colored, "") != strings.Join(lines, "\n") {
				t.Errorf("%s at %v: colour changes the text", name, size)
			}
		}
	}
}

func TestGaugeMarks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		tokens int
		color  string // the bar's color
	}{
		{"below the flush", 3599, "\x1b[32m"},
		{"at the flush", 3600, "\x1b[33m"},
		{"at the compaction", 4000, "\x1b[31m"},
		{"far over it", 40_000, "\x1b[31m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := scene{Tokens: tt.tokens, FlushAt: 3600, Threshold: 4000}
			if bar := renderGauge(s, 79, newPalette(true))[2]; !strings.HasPrefix(bar, tt.color+"█") {
				t.Errorf("got the bar %q, want it to begin with %q", bar, tt.color)
			}
		})
	}
	// The bar reaches a mark exactly when the context does.
	lines := renderGauge(scene{Tokens: 3600, FlushAt: 3600, Threshold: 4000}, 79, newPalette(false))
	mark := cells.StringWidth(lines[3][:strings.Index(lines[3], "▲")])
	if full := strings.Count(lines[2], "█"); full != mark {
		t.Errorf("at the flush the bar has %d columns, and its mark stands at %d", full, mark)
	}
}

func TestClosingTable(t *testing.T) {
	t.Parallel()
	good := storyCounts{Acked: 20, Answered: 20, Flushes: 2, Compactions: 1, Memories: 6}
	for _, tt := range []struct {
		name   string
		change func(*storyCounts)
		bad    []string
	}{
		{"as expected", func(*storyCounts) {}, nil},
		{"a message lost", func(c *storyCounts) { c.Answered-- }, []string{"answered", "lost"}},
		{"answered twice", func(c *storyCounts) { c.Doubled++ }, []string{"answered twice"}},
		{"nothing flushed", func(c *storyCounts) { c.Flushes, c.Memories = 0, 0 }, []string{"memory flushes", "memories"}},
		{"nothing compacted", func(c *storyCounts) { c.Compactions = 0 }, []string{"compactions"}},
		{"a card left unfinished", func(c *storyCounts) { c.OpenCards = 1 }, []string{"cards left unfinished"}},
		{"protocol broken", func(c *storyCounts) { c.Violations = 1 }, []string{"protocol violations"}},
		{"illegal request", func(c *storyCounts) { c.Illegal = 1 }, []string{"illegal model requests"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := good
			tt.change(&c)
			var bad []string
			for _, r := range closingTable(c) {
				if !r.Good {
					bad = append(bad, r.Label)
				}
			}
			if len(bad) != len(tt.bad) {
				t.Fatalf("got the bad rows %q, want %q", bad, tt.bad)
			}
			for i := range bad {
				if !strings.HasSuffix(bad[i], tt.bad[i]) {
					t.Errorf("got the bad row %q, want %q", bad[i], tt.bad[i])
				}
			}
		})
	}
}

// On a terminal the next drawing goes over the last one; nothing scrolls.
func TestShowDrawsInPlace(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	size := [2]int{80, 24}
	s := &screen{out: &out, size: func() (int, int) { return size[0], size[1] }, began: time.Now(), palette: newPalette(false)}
	s.showMessage("张伟", "第一句", false)
	first := strings.Count(out.String(), "\n")
	out.Reset()
	s.showMessage("李娜", "第二句", false)
	if got := out.String(); !strings.HasPrefix(got, "\x1b[23A\r") || first != 23 || strings.Count(got, "\n") != 23 {
		t.Errorf("got %d lines and then %q, want 23 and 23 more over them", first, got)
	}
	out.Reset()
	size = [2]int{100, 30}
	s.drawScene()
	if got := out.String(); !strings.HasPrefix(got, "\x1b[2J\x1b[H\r") {
		t.Errorf("got %q after a change of size, want a clear screen", got)
	}
	s.stopDrawing()
	out.Reset()
	s.showMessage("Alex", "nobody sees it", false)
	if out.Len() > 0 {
		t.Errorf("got %q after the end, want nothing", out.String())
	}
}

// A card fills in its own line: its end is seen while it grows, its beginning afterwards. An older frame changes nothing.
func TestShowCard(t *testing.T) {
	t.Parallel()
	s := &screen{out: io.Discard, size: func() (int, int) { return 80, 24 }, began: time.Now(), palette: newPalette(false)}
	long := "开头 " + strings.Repeat("很长的一段", 60)
	for _, tt := range []struct {
		name      string
		change    func()
		has, lost []string
	}{
		{"first frame", func() { s.showCard("c", "开头", false) }, []string{"Ebb     开头▌"}, nil},
		{"long frame", func() { s.showCard("c", long+" 末尾", false) }, []string{"末尾▌"}, []string{"开头"}},
		{"end", func() { s.showCard("c", long+" 末尾。", true) }, []string{"Ebb     开头", "…"}, []string{"末尾", "▌"}},
		{"older frame", func() { s.showCard("c", "旧的", false) }, []string{"开头"}, []string{"旧的", "▌"}},
		{"rating", func() { s.markCard("c", "👍") }, []string{"👍 开头"}, nil},
		{"another message", func() { s.showMessage("李娜", "谢谢", false) }, []string{"👍 开头", "李娜    谢谢"}, nil},
	} {
		tt.change()
		got := strings.Join(renderConversation(s.scene.Said, 4, 79, s.palette), "\n")
		for _, w := range tt.has {
			if !strings.Contains(got, w) {
				t.Errorf("%s: no %q in\n%s", tt.name, w, got)
			}
		}
		for _, w := range tt.lost {
			if strings.Contains(got, w) {
				t.Errorf("%s: %q in\n%s", tt.name, w, got)
			}
		}
	}
	if n := len(s.scene.Said); n != 2 {
		t.Errorf("got %d lines, want one of the card and one of the message", n)
	}
}

// At the prompt the text of a card is printed as it grows, whatever its frames do in between.
func TestGrowingText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		frames []string
		end    string
		want   string
	}{
		{"no frame", nil, "全文", "全文\n"},
		{"grows", []string{"⏳ 正在思考 …", "一", "一\n\n⏳ 正在使用工具 a …", "一二"}, "一二三", "一二三\n"},
		{"closed fence", []string{"```\na", "```\na\n```", "```\na\nb\n```"}, "```\na\nb\n```", "```\na\n```\n```\na\nb\n```\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			g := growingText{out: &out}
			for _, f := range tt.frames {
				g.grow(f)
			}
			if g.end(tt.end); out.String() != tt.want {
				t.Errorf("got %q, want %q", out.String(), tt.want)
			}
		})
	}
}

// Without a terminal, each event is a line, without a control character.
func TestShowPrintsLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newShow(&out, func(string) string { return "" })
	s.printIntro()
	s.showCaption("开始 begin")
	s.showMessage("张伟", "两行\n并成一行", false)
	s.showAction("压缩 compaction", "4,202 → 2,672")
	s.updateScene(func(c *scene) { c.Threshold = 4000 })
	s.showContext(3600)
	s.printEnd(closingTable(storyCounts{Acked: 1, Answered: 1, Flushes: 1, Compactions: 1, Memories: 1}), "✔ done")
	for _, want := range []string{
		honestChinese + "\n", honestEnglish + "\n", "== 开始 begin\n", "张伟: 两行 并成一行\n", "● 压缩 compaction\n", "     4,202 → 2,672\n",
		"3,600 / 4,000 tokens, 90%]\n", "丢失 lost                                      0\n", "✔ done\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.ContainsAny(out.String(), "\x1b\r") || s.isTerminal() {
		t.Errorf("control characters for no terminal:\n%q", out.String())
	}
}
