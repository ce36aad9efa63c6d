package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"

	"ebb/bot/chat"
	"ebb/bot/tools/mcp"
	"ebb/bot/tools/mcp/mcptest"
	"ebb/sessions"
)

// Turns go on after the signal, for as long as the drain, and call their tools until its end.
func TestToolsWorkDuringTheDrain(t *testing.T) {
	t.Parallel()
	odd := mcptest.New()
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return odd }, nil))
	t.Cleanup(web.Close)
	pool := mcp.New(mcp.Config{Now: time.Now, Servers: []mcp.Server{{
		Name: "odd", URL: web.URL, Allow: []string{"echo"}, Groups: []string{"*"}, Timeout: 10 * time.Second, MaxResultTokens: 8000,
	}}})
	g := &gateway{servers: pool, registry: prometheus.NewRegistry()}
	ctx, signal := context.WithCancel(t.Context())
	stop := g.runServers(ctx)
	tools := pool.Tools("cid", sessions.Group)
	if len(tools) != 1 {
		stop()
		t.Fatalf("%d tools, want 1", len(tools))
	}
	signal()
	time.Sleep(200 * time.Millisecond) // an end by the signal would have come by then
	if text, err := tools[0].Call(t.Context(), chat.ToolInput{Arguments: `{"text": "late"}`}); err != nil || !strings.Contains(text, "late") {
		t.Errorf("after the signal the tool answers %q, %v", text, err)
	}
	stop()
	ended, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if text, err := tools[0].Call(ended, chat.ToolInput{Arguments: `{"text": "later"}`}); err == nil {
		t.Errorf("after the drain the tool answers %q", text)
	}
}
