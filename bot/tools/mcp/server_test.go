package mcp

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"ebb/bot/tools/mcp/mcptest"
)

// serverVariable makes the test binary a server on its standard input and output.
const serverVariable = "EBB_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		if err := mcptest.Serve(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/modelcontextprotocol/go-sdk/mcp.(*streamableServerConn).Read")) // sessions of the test's own server
}

func stdio(t *testing.T) Server {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Server{
		Name: "odd", Command: program, Env: map[string]string{serverVariable: "1", "ODD_KEY": "key-of-the-server"},
		Allow: []string{"*"}, Groups: []string{"*"}, Timeout: 10 * time.Second, MaxResultTokens: 8000,
	}
}

// overHTTP serves mcptest.New. The handler around may be nil.
func overHTTP(t *testing.T, around func(http.Handler) http.Handler) (Server, *httptest.Server) {
	t.Helper()
	s := mcptest.New()
	var h http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	if around != nil {
		h = around(h)
	}
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	return Server{
		Name: "odd", URL: web.URL + "/mcp?key=key-in-the-address", Headers: map[string]string{"Authorization": "Bearer token-of-the-bot"},
		Allow: []string{"*"}, Groups: []string{"*"}, Timeout: 10 * time.Second, MaxResultTokens: 8000,
	}, web
}
