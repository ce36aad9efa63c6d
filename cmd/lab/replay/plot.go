package replay

import (
	"fmt"
	"html"
	"strings"

	"ebb/cmd/lab/rig"
)

// SVG units.
const (
	plotWidth  = 1120
	plotLeft   = 290 // left end of the bars
	plotBars   = 560 // longest bar
	plotTop    = 118
	plotRow    = 30
	plotBar    = 18
	plotGroup  = 30 // over a group's first bar
	plotBottom = 92
)

// Longer bars are cut. The unit is the cost of the sliding window.
const plotCeiling = 1.12

var plotParts = []struct {
	colour, name string
}{
	{"#2f6db3", "prompt, not cached · 未命中缓存的输入"},
	{"#9cc3e6", "prompt, from the cache · 命中缓存的输入"},
	{"#e08a3c", "summaries and flushes · 摘要与记忆写入"},
}

var plotGroups = map[resultGroup]string{
	groupBaseline: "For comparison (simulated) · 对照（模拟）",
	groupPeer:     "Other bots' policies (simulated) · 其他机器人的策略（模拟）",
	groupEngine:   "Ebb (the real engine) · Ebb（真实引擎）",
}

func (b policyBill) barParts() [3]float64 {
	main := b.spend[callMain]
	return [3]float64{
		main.uncachedCost(), targetPrice * float64(main.cached),
		b.spend[callSummary].totalCost(targetPrice) + b.spend[callFlush].totalCost(targetPrice),
	}
}

// DrawSVG draws the cost of every policy. Equal figures give equal bytes.
func (c Comparison) DrawSVG() string {
	longest := plotCeiling * c.billsByName()[windowSeed].totalCost(targetPrice)
	var bars strings.Builder
	y, group := plotTop, resultGroup(-1)
	for _, r := range c.results {
		if r.group != group {
			group = r.group
			y += plotGroup
			fmt.Fprintf(&bars, `<text x="24" y="%d" class="group">%s</text>`+"\n", y-9, html.EscapeString(plotGroups[group]))
		}
		bars.WriteString(r.drawBar(y, longest))
		y += plotRow
	}
	height := y + plotBottom
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-labelledby="title">
<title id="title">What compaction policies cost · 各压缩策略的成本</title>
<style>
text { font-family: "Noto Sans CJK SC", "Noto Sans SC", "PingFang SC", "Microsoft YaHei", "WenQuanYi Zen Hei", "DejaVu Sans", sans-serif; font-size: 13px; fill: #1f2933; }
.title { font-size: 20px; font-weight: bold; }
.group { font-size: 13px; font-weight: bold; fill: #52606d; }
.small { font-size: 12px; fill: #52606d; }
.name { text-anchor: end; }
</style>
<rect width="%d" height="%d" fill="#ffffff"/>
<text x="24" y="36" class="title">What compaction policies cost · 各压缩策略的成本</text>
<text x="24" y="60" class="small">%s; cost in thousands of uncached input tokens, a cached one at %v, an output one at %d · 单位：千个未命中缓存的输入 token</text>
`, plotWidth, height, plotWidth, height, plotWidth, height, html.EscapeString(c.source), targetPrice, outputPrice)
	s.WriteString(drawLegend())
	s.WriteString(c.drawScale(longest, y))
	s.WriteString(bars.String())
	for i, line := range []string{
		"x: of the sliding window 12/40/900/30 · covered: past messages that a request shows raw or in a summary · tail: mean raw tokens",
		"x：与滑动窗口 12/40/900/30 之比 · covered：请求中以原文或摘要呈现的历史消息比例 · tail：平均保留的原文 token 数",
		"A bar with a broken end is longer than the plot · 末端断开的条形超出图幅",
	} {
		fmt.Fprintf(&s, `<text x="24" y="%d" class="small">%s</text>`+"\n", y+34+i*19, html.EscapeString(line))
	}
	s.WriteString("</svg>\n")
	return s.String()
}

func (r policyResult) drawBar(y int, longest float64) string {
	var s strings.Builder
	fmt.Fprintf(&s, `<text x="%d" y="%d" class="name">%s</text>`+"\n", plotLeft-10, y+14, html.EscapeString(r.name))
	x, total := float64(plotLeft), r.bill.totalCost(targetPrice)
	for i, part := range r.bill.barParts() {
		width := min(part/longest*plotBars, plotLeft+plotBars-x)
		if width <= 0 {
			continue
		}
		fmt.Fprintf(&s, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", x, y, width, plotBar, plotParts[i].colour)
		x += width
	}
	if total > longest {
		fmt.Fprintf(&s, `<path d="M%.1f %d l6 -%d l4 0 l-6 %d z" fill="#ffffff"/>`+"\n", x-16, y+plotBar, plotBar, plotBar)
	}
	fmt.Fprintf(&s, `<text x="%.1f" y="%d">%.0f</text>`+"\n", x+8, y+14, total/1000)
	return s.String()
}

func drawLegend() string {
	var s strings.Builder
	x := 24
	for _, p := range plotParts {
		fmt.Fprintf(&s, `<rect x="%d" y="78" width="14" height="14" fill="%s"/><text x="%d" y="90">%s</text>`+"\n", x, p.colour, x+20, html.EscapeString(p.name))
		x += 330
	}
	return s.String()
}

// Further figures stand at the right.
func (c Comparison) drawScale(longest float64, bottom int) string {
	var s strings.Builder
	step := 500_000.0
	for longest/step > 8 {
		step *= 2
	}
	for longest/step < 3 {
		step /= 2
	}
	for v := 0.0; v <= longest; v += step {
		x := plotLeft + v/longest*plotBars
		fmt.Fprintf(&s, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#e4e7eb"/><text x="%.1f" y="%d" class="small" text-anchor="middle">%.0f</text>`+"\n",
			x, plotTop+8, x, bottom, x, bottom+12, v/1000)
	}
	columns := []struct {
		at   int
		name string
		of   func(policyBill) string
	}{
		{plotLeft + plotBars + 110, "x", func(b policyBill) string {
			return fmt.Sprintf("%.2f", rig.Ratio(b.totalCost(targetPrice), c.billsByName()[windowSeed].totalCost(targetPrice)))
		}},
		{plotLeft + plotBars + 175, "covered", func(b policyBill) string { return fmt.Sprintf("%.0f %%", 100*b.covered.shareOf()) }},
		{plotLeft + plotBars + 240, "tail", func(b policyBill) string { return fmt.Sprintf("%.0f", b.meanTail()) }},
	}
	for _, column := range columns {
		fmt.Fprintf(&s, `<text x="%d" y="%d" class="group" text-anchor="end">%s</text>`+"\n", column.at, plotTop+4, column.name)
		y, group := plotTop, resultGroup(-1)
		for _, r := range c.results {
			if r.group != group {
				group = r.group
				y += plotGroup
			}
			fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", column.at, y+14, column.of(r.bill))
			y += plotRow
		}
	}
	return s.String()
}
