package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
)

// The screen fits into the smallest terminals in use. Conversation and actions get the further rows of a larger one.
const (
	minColumns, maxColumns = 60, 100
	minRows, maxRows       = 24, 40
)

// cells measures in any locale as terminals do: Chinese characters take two columns, lines and blocks one.
var cells = &runewidth.Condition{StrictEmojiNeutral: true}

type colorPalette struct{ bold, dim, good, warn, bad, name func(string) string }

func newPalette(color bool) colorPalette {
	sgr := func(code string) func(string) string {
		if !color {
			return func(s string) string { return s }
		}
		return func(s string) string { return "\x1b[" + code + "m" + s + "\x1b[0m" }
	}
	return colorPalette{bold: sgr("1"), dim: sgr("2"), good: sgr("32"), warn: sgr("33"), bad: sgr("31"), name: sgr("36")}
}

const (
	honestChinese = "真的：网关进程、PostgreSQL、信号。替身：钉钉是模拟器，模型照脚本答话，非大模型"
	honestEnglish = "Real: gateways, PostgreSQL, signals. Simulated: DingTalk. Scripted: the model."
)

// renderScene draws at most rows-1 lines: the cursor stands on one more.
func renderScene(s scene, columns, rows int, p colorPalette) []string {
	w := min(max(columns, minColumns), maxColumns) - 1
	rows = min(max(rows, minRows), maxRows)
	title := "Ebb · 不忘事的钉钉群机器人 · demo"
	clock := fmt.Sprintf("%3d s", int(s.Elapsed/time.Second))
	lines := []string{
		p.bold(padWidth(title, w-cells.StringWidth(clock))) + p.dim(clock),
		p.dim(fitWidth(honestChinese, w)),
		p.dim(fitWidth(honestEnglish, w)),
		"",
		p.bold(fitWidth("▶ "+s.Caption, w)),
	}
	lines = append(lines, renderGauge(s, w, p)...)
	foot := renderFooter(s, w, p)
	room := rows - 1 - len(lines) - len(foot)
	if s.Table == nil { // the closing table needs the room
		talk := room/2 - 1
		lines = append(lines, renderHeading("群聊 group: "+demoGroupTitle, w, p))
		lines = append(lines, renderConversation(s.Said, talk, w, p)...)
		room -= talk + 1
	}
	lines = append(lines, renderHeading("发生了什么 what happened", w, p))
	lines = append(lines, renderHappenings(s.Happened, room-1, w, p)...)
	return append(lines, foot...)
}

func renderHeading(text string, w int, p colorPalette) string {
	text = "── " + text + " "
	return p.dim(text + strings.Repeat("─", max(0, w-cells.StringWidth(text))))
}

func renderGauge(s scene, w int, p colorPalette) []string {
	if s.Threshold <= 0 {
		return []string{"", fitWidth("上下文 context: -", w), "", ""}
	}
	percent := s.Tokens * 100 / s.Threshold
	label := fmt.Sprintf("上下文 context  %s / %s tokens  %d%%", withCommas(s.Tokens), withCommas(s.Threshold), percent)
	color := p.good
	switch {
	case s.Tokens >= s.Threshold:
		color = p.bad
	case s.Tokens >= s.FlushAt:
		color = p.warn
	}
	// The bar goes to 110 %, so that the mark of the compaction stands inside it.
	at := func(tokens int) int { return min(w, tokens*w*10/(s.Threshold*11)) }
	full, flush, compact := at(s.Tokens), at(s.FlushAt), at(s.Threshold)
	const hundred = "100% 压缩 compact"
	marks := strings.Repeat(" ", compact) + "▲ 100%"
	if words := "整理记忆 flush 90% "; flush >= cells.StringWidth(words) {
		marks = strings.Repeat(" ", flush-cells.StringWidth(words)) + words + "▲"
		marks = padWidth(marks, compact) + "▲ 100%"
	}
	return []string{
		"",
		padWidth(label, w-cells.StringWidth(hundred)) + p.dim(hundred),
		color(strings.Repeat("█", full)) + p.dim(strings.Repeat("░", w-full)),
		p.dim(fitWidth(marks, w)),
	}
}

const cursor = "▌"

// A newest message that is a card takes half of the n lines.
func renderConversation(said []spokenLine, n, w int, p colorPalette) []string {
	const names = 8
	lines := make([]string, 0, n)
	for i, s := range said[max(0, len(said)-n):] {
		name := p.name
		if s.Bot {
			name = p.good
		}
		rows := 1
		if s.Card != "" && i == min(n, len(said))-1 {
			rows = max(1, n/2)
		}
		who := padWidth(fitWidth(s.Who, names-1), names)
		for _, text := range renderSpoken(s, rows, w-names) {
			lines = append(lines, name(who)+text)
			who = padWidth("", names)
		}
	}
	return fillWidth(lines[max(0, len(lines)-n):], n)
}

// renderSpoken shows the end of a card that still fills, the beginning of any other message.
func renderSpoken(s spokenLine, n, w int) []string {
	text := strings.TrimSpace(s.Mark + " " + oneLine(s.Text))
	if s.Open {
		text += cursor
	}
	if n == 1 && !s.Open {
		return []string{fitWidth(text, w)}
	}
	lines := strings.Split(cells.Wrap(text, w), "\n")
	switch {
	case len(lines) <= n:
		return lines
	case s.Open:
		return lines[len(lines)-n:]
	}
	return append(lines[:n-1:n-1], fitWidth(strings.Join(lines[n-1:], ""), w))
}

// renderHappenings shows the newest action whole if there is room.
func renderHappenings(happened []sceneAction, n, w int, p colorPalette) []string {
	var lines []string
	for _, h := range happened {
		lines = append(lines, p.warn("●")+" "+fitWidth(h.Text, w-2))
		for _, d := range h.Details {
			lines = append(lines, p.dim("   "+fitWidth(oneLine(d), w-3)))
		}
	}
	if len(happened) > 0 {
		if newest := 1 + len(happened[len(happened)-1].Details); newest > n {
			lines = lines[len(lines)-newest:] // its first line explains the others
			return lines[:n]
		}
	}
	return fillWidth(lines[max(0, len(lines)-n):], n)
}

func renderFooter(s scene, w int, p colorPalette) []string {
	if s.Table != nil {
		lines := []string{renderHeading("结果 result", w, p)}
		for _, r := range s.Table {
			lines = append(lines, drawRow(r, p))
		}
		return append(lines, p.bold(fitWidth(s.Result, w)))
	}
	c := s.Counts
	figures := fmt.Sprintf("已确认 acked %d · 已答 answered %d · 待答 waiting %d · 重复 doubled %d",
		c.Acked, c.Answered, c.unanswered(), c.Doubled)
	more := fmt.Sprintf("整理 flushes %d · 压缩 compactions %d · 记忆 memories %d · 违规 violations %d",
		c.Flushes, c.Compactions, c.Memories, c.Violations)
	return []string{renderHeading("网关进程 gateways: "+replicaLine(s.Replicas), w, p), fitWidth(figures, w), fitWidth(more, w)}
}

func drawRow(r tableRow, p colorPalette) string {
	mark := p.good("✔")
	if !r.Good {
		mark = p.bad("✘")
	}
	return mark + " " + padWidth(r.Label, 42) + fmt.Sprintf("%6s", r.Value)
}

func replicaLine(replicas []replicaState) string {
	var parts []string
	for _, r := range replicas {
		mark := "○"
		if r.Alive {
			mark = "●"
		}
		parts = append(parts, fmt.Sprintf("%s %s %s", mark, r.Name, r.State))
	}
	return strings.Join(parts, "  ")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func fitWidth(s string, w int) string { return cells.Truncate(s, max(0, w), "…") }

func padWidth(s string, w int) string { return cells.FillRight(fitWidth(s, w), max(0, w)) }

func fillWidth(lines []string, n int) []string {
	for len(lines) < n {
		lines = append(lines, "")
	}
	return lines
}

func withCommas(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
