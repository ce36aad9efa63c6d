// Package mcptest is an MCP server for tests: its tools do well, hang, die and flood.
package mcptest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Serve serves [New] on the standard input and output.
func Serve(ctx context.Context) error { return New().Run(ctx, &mcp.StdioTransport{}) }

// slowNote is long enough for a process to die meanwhile.
const slowNote = 1500 * time.Millisecond

// Handler serves [New] over HTTP.
func Handler() http.Handler {
	s := New()
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
}

type words struct {
	Text string `json:"text"`
}

// New has tools that do well, and tools that do harm.
func New() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "odd", Version: "1"}, nil)
	add := func(name, description string, call func(ctx context.Context, in words) (*mcp.CallToolResult, error)) {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: description}, func(ctx context.Context, _ *mcp.CallToolRequest, in words) (*mcp.CallToolResult, any, error) {
			r, err := call(ctx, in)
			return r, nil, err
		})
	}
	say := func(text string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	}
	add("echo", "Repeats a text.", func(_ context.Context, in words) (*mcp.CallToolResult, error) { return say("echo: " + in.Text), nil })
	if os.Getenv("ODD_SCHEMA") != "" { // a later release of the server
		s.RemoveTools("echo")
		mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Repeats words."}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
			Words string `json:"words"`
		}) (*mcp.CallToolResult, any, error) {
			return say("echo: " + in.Words), nil, nil
		})
	}
	add("hang", "Never answers.", func(ctx context.Context, _ words) (*mcp.CallToolResult, error) { <-ctx.Done(); return nil, ctx.Err() })
	add("slow", "Notes a text in a file, and answers after six seconds.", func(ctx context.Context, in words) (*mcp.CallToolResult, error) {
		f, err := os.OpenFile(os.Getenv("ODD_FILE"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		if _, err := f.WriteString(in.Text + "\n"); err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(6 * time.Second):
			return say("slow: " + in.Text), nil
		}
	})
	note := func(ctx context.Context, in words) (*mcp.CallToolResult, error) {
		f, err := os.OpenFile(os.Getenv("ODD_FILE"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		_, err = fmt.Fprintf(f, "%d %s\n", time.Now().UnixNano(), in.Text) // one write: calls of several processes do not mix
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		switch how, _, _ := strings.Cut(in.Text, " "); how {
		case "slow":
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(slowNote):
			}
		case "hang":
			<-ctx.Done()
			return nil, ctx.Err()
		case "die":
			os.Exit(3)
		case "flood":
			return say(strings.Repeat("0123456789", 500_000)), nil
		}
		return say("noted: " + in.Text), nil
	}
	add("note", "Notes a text with the time in a file. Then the first word says what the server does: slow, hang, die, flood.", note)
	add("sign", "Notes a text as note does, for those who want an approval.", note)
	add("die", "Ends the server.", func(context.Context, words) (*mcp.CallToolResult, error) { os.Exit(3); return nil, nil })
	add("flood", "Answers with 5 MB.", func(context.Context, words) (*mcp.CallToolResult, error) {
		return say(strings.Repeat("0123456789", 500_000)), nil
	})
	add("deluge", "Answers with more than a connection takes.", func(context.Context, words) (*mcp.CallToolResult, error) {
		return say(strings.Repeat("0123456789", 2_000_000)), nil
	})
	add("fail", "Fails.", func(context.Context, words) (*mcp.CallToolResult, error) { return nil, errors.New("no such document") })
	add("environment", "Lists its variables.", func(context.Context, words) (*mcp.CallToolResult, error) {
		return say(strings.Join(os.Environ(), "\n")), nil
	})
	add("nul", "Answers with bytes that no database takes.", func(context.Context, words) (*mcp.CallToolResult, error) { return say("a\x00b"), nil })
	add("picture", "Answers with a picture.", func(context.Context, words) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: []byte("png")}}}, nil
	})
	if os.Getenv("ODD_OFFICE") != "" {
		for name, about := range office() {
			add(name, about, func(_ context.Context, in words) (*mcp.CallToolResult, error) { return say(name + ": " + in.Text), nil })
		}
	}
	add("draw", "Answers with files: picture, pdf, html, many, path, link.", func(_ context.Context, in words) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: files(in.Text)}, nil
	})
	s.AddResource(&mcp.Resource{Name: "月报.pdf", URI: "odd://reports/月报.pdf"}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "application/pdf", Blob: []byte(pdf)}}}, nil
	})
	add("grow", "Adds a tool.", func(context.Context, words) (*mcp.CallToolResult, error) {
		add("grown", "Came later.", func(context.Context, words) (*mcp.CallToolResult, error) { return say("grown"), nil })
		return say("added"), nil
	})
	return s
}

// office is 60 tools by name, with their descriptions.
func office() map[string]string {
	tools := map[string]string{}
	for verb, does := range map[string]string{"query": "查询", "create": "新建", "update": "修改", "delete": "删除", "list": "列出"} {
		for noun, what := range map[string]string{
			"weather": "天气预报", "expense": "报销单", "leave": "请假申请", "room": "会议室", "calendar": "日程", "document": "文档",
			"contract": "合同", "invoice": "发票", "order": "订单", "customer": "客户资料", "attendance": "考勤记录", "vote": "投票",
		} {
			tools[verb+"_"+noun] = does + what + "。text 写明时间、地点、编号或名称；一次只处理一条，结果以文字返回，失败时说明原因，不会影响其他数据。"
		}
	}
	return tools
}

const pdf = "%PDF-1.7\n% a report\n"

// files are the parts of an answer.
func files(what string) []mcp.Content {
	picture := &mcp.ImageContent{MIMEType: "image/png", Data: dot()}
	blob := func(uri, mime, data string) mcp.Content {
		return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: mime, Blob: []byte(data)}}
	}
	switch what {
	case "pdf":
		return []mcp.Content{&mcp.TextContent{Text: "报告好了"}, blob("file:///reports/季度报告.pdf", "application/pdf", pdf)}
	case "html":
		return []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: []byte("<html><script>alert(1)</script></html>")}}
	case "many":
		parts := make([]mcp.Content, 100)
		for i := range parts {
			parts[i] = picture
		}
		return parts
	case "path":
		return []mcp.Content{blob("file:///../../etc/passwd%00.pdf\u202e", "text/html", pdf)}
	case "link":
		return []mcp.Content{
			&mcp.ResourceLink{URI: "odd://reports/月报.pdf", Name: "月报.pdf"},
			&mcp.ResourceLink{URI: "http://127.0.0.1:1/secret.pdf", Name: "secret.pdf"},
		}
	}
	return []mcp.Content{&mcp.TextContent{Text: "画好了"}, picture}
}

func dot() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewPaletted(image.Rect(0, 0, 4, 3), color.Palette{color.White})); err != nil {
		panic(err) // a buffer does not fail
	}
	return b.Bytes()
}
