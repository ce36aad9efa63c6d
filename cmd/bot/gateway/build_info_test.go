package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"ebb/bot/config"
)

// addresses sends the address of the admin server from the log.
type addresses chan string

func (a addresses) Write(line []byte) (int, error) {
	var l struct{ Admin string }
	if json.Unmarshal(line, &l) == nil && l.Admin != "" {
		a <- l.Admin
	}
	return len(line), nil
}

// /metrics names the release and the Go version from the start, also before the database answers.
func TestMetricsNameTheRelease(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // a database that does not answer
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	file := filepath.Join(t.TempDir(), "bot.jsonc")
	text := fmt.Sprintf(`{"database": {"url": "postgres://%s/d?sslmode=disable"}, "admin": {"listen": "127.0.0.1:0"}}`, silent.Addr())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, func(string) string { return "" }, config.NeedNothing)
	if err != nil {
		t.Fatal(err)
	}
	found := make(addresses, 1)
	ctx, stop := context.WithCancel(zerolog.New(found).WithContext(t.Context()))
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, cfg, Options{Version: "v1.2-test"}) }()
	select {
	case address := <-found:
		response, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		page, err := io.ReadAll(response.Body)
		want := fmt.Sprintf("\nebb_build_info{go=%q,version=\"v1.2-test\"} 1\n", runtime.Version())
		if err != nil || !strings.Contains(string(page), want) {
			t.Errorf("/metrics (%v) lacks %s in %.300s", err, want, page)
		}
	case err := <-served:
		t.Fatal("the gateway ended: ", err)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
