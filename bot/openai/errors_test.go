package openai

import (
	"net"
	"strings"
	"testing"
	"time"

	"ebb/bot"
)

// An endpoint that nobody listens at is busy for those who wait, and unreachable for those who look after it.
func TestUnreachableEndpoint(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{free, "nowhere.invalid"} {
		c, err := New(Config{Models: []ModelConfig{{Name: "a", BaseURL: "http://" + address + "/v1", Model: "m", Timeout: 20 * time.Second}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		_, err = c.Generate(t.Context(), ask("Q1"))
		if m := class(t, err, bot.Busy); !m.Unreachable || bot.TroubleOf(err) != "unreachable" {
			t.Errorf("%s: got %+v, told as %q", address, m, bot.TroubleOf(err))
		}
		if log := err.Error(); !strings.HasPrefix(log, "model a: unreachable: ") || strings.Contains(log, "busy") {
			t.Errorf("%s: logged as %q", address, log)
		}
	}
}
