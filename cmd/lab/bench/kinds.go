package bench

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/media/document/documenttest"
	"ebb/bot/tools/mcp/mcptest"
	"ebb/cmd/lab/rig"
)

const (
	kindsRounds = 3
	kindsSlice  = 2 * time.Second
	kindsPages  = 3
	kindsWidth  = 800
	kindsHeight = 600
)

// turnKind is a kind of turn, as a way to ask for it.
type turnKind struct {
	name string
	ask  func(conversation string) *rig.Question
	used loopUsage
}

// measureKinds alternates plain turns with those that call a tool of a server, and those about a file and a picture. Each file is another one for
// the gateway, which downloads it and parses it in a child process. The children's CPU is not in the figures.
func (b *suite) measureKinds(ctx context.Context) (figures []rig.Figure, err error) {
	tools := httptest.NewServer(mcptest.Handler())
	defer tools.Close() // behind the gateway, which keeps a connection
	r, ctx := b.openFixture(ctx)
	defer func() { err = rig.JoinStopError(err, r.close(ctx)) }()
	r.change = func(c map[string]any) {
		c["tools"] = map[string]any{"mcp": []map[string]any{{"name": "odd", "url": tools.URL, "allow": []string{"echo"}}}}
	}
	g, err := r.startOne(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.AskOnce(ctx, 0, turnsConversations); err != nil { // every session is made
		return nil, err
	}
	kinds, err := r.turnKinds()
	if err != nil {
		return nil, err
	}
	for range kindsRounds {
		for i := range kinds {
			if err := kinds[i].used.addLoop(ctx, r, g, kindsSlice, kinds[i].ask); err != nil {
				return nil, fmt.Errorf("%s: %w", kinds[i].name, err)
			}
		}
	}
	if lines := r.book.Lines("Attachment could not be read"); len(lines) > 0 {
		return nil, fmt.Errorf("%d attachments were not read: %v", len(lines), lines[0])
	}
	plain := kinds[0].used
	for _, k := range kinds {
		figures = append(figures, rig.Figure{
			Name:     k.name,
			Measured: fmt.Sprintf("%.0f turns/s; gateway CPU %s, allocations %.0f KB a turn", k.used.rate(), rig.FormatMillis(k.used.cpuEach()), k.used.allocatedEach()/1024),
			Ratio: fmt.Sprintf("turns/s %.2f x, CPU %.1f x, allocations %.1f x a plain turn", rig.Ratio(k.used.rate(), plain.rate()),
				rig.Ratio(float64(k.used.cpuEach()), float64(plain.cpuEach())), rig.Ratio(k.used.allocatedEach(), plain.allocatedEach())),
		})
	}
	return figures, nil
}

func (r *fixture) turnKinds() ([]turnKind, error) {
	pages := make([]string, kindsPages)
	for i := range pages {
		pages[i] = fmt.Sprintf("第%d页发布的步骤，按顺序检查各项指标。", i+1)
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewPaletted(image.Rect(0, 0, kindsWidth, kindsHeight), color.Palette{color.White, color.Black})); err != nil {
		return nil, err
	}
	file := r.dingtalk.AddFile("步骤.pdf", "application/pdf", documenttest.PDF(pages...))
	shot := r.dingtalk.AddFile("截图.png", "image/png", picture.Bytes())
	var sent atomic.Int64
	about := func(kind, code, name string) func(string) *rig.Question {
		return func(conversation string) *rig.Question {
			return r.AskAbout(conversation, "这里写了什么", dingtalktest.QuoteMedia(kind, fmt.Sprintf("kinds-%d", sent.Add(1)), code, name))
		}
	}
	return []turnKind{
		{name: "plain turn", ask: r.AskPlainly},
		{name: "turn with a call of an MCP tool", ask: func(conversation string) *rig.Question { return r.Ask(conversation, toolWord) }},
		{name: fmt.Sprintf("turn about a PDF of %d pages", kindsPages), ask: about("file", file, "步骤.pdf")},
		{name: fmt.Sprintf("turn about a picture of %d x %d", kindsWidth, kindsHeight), ask: about("picture", shot, "")},
	}, nil
}
