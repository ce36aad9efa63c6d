package sessions_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ebb/sessions"
)

// Law: whatever a quoted text is, its line has one end, so that the words behind it are the message's own.
func TestQuotesHaveOneEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune("[]\n ]引用a")), rapid.Rune())).Draw(t, "text")
		quoted := sessions.QuoteText(text)
		if strings.ContainsAny(quoted, "[]\n\r") || len([]rune(quoted)) > sessions.MaxQuote+1 {
			t.Fatalf("%q is quoted as %q", text, quoted)
		}
		if again := sessions.QuoteText(quoted); again != quoted && len([]rune(quoted)) <= sessions.MaxQuote {
			t.Fatalf("quoted again it is %q, and was %q", again, quoted)
		}
		const own = "own words"
		e := sessions.Event{Content: sessions.QuoteLead("李", quoted) + own, Message: &sessions.Message{}}
		if got := e.Without(sessions.WithheldQuote).Content; got != own {
			t.Fatalf("without the quote %q is %q", quoted, got)
		}
	})
}

func TestLeadOfAQuote(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		quote sessions.Quote
		want  string
	}{
		{sessions.Quote{}, ""},
		{sessions.Quote{Nick: "李"}, ""}, // no words are known
		{sessions.Quote{Nick: "李", Text: "好"}, "[引用 李: 好]\n"},
		{sessions.Quote{Nick: "李", Text: "好", FromBot: true}, "[引用 Ebb: 好]\n"},
		{sessions.Quote{Nick: "李", Text: "好", Who: "李娜(u1)", Shown: "从日志来"}, "[引用 李娜(u1): 从日志来]\n"},
	} {
		if got := c.quote.Lead("Ebb"); got != c.want {
			t.Errorf("%+v: %q, want %q", c.quote, got, c.want)
		}
	}
}

// The stored form of a message has these names: rows of earlier releases are read by them.
func TestStoredFormOfAMessage(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	m := sessions.Message{
		RobotCode: "r", ConversationID: "c", ConversationType: sessions.Group, ID: "m", SenderID: "u", StaffID: "u", EncryptedID: "$:e", Kind: "text",
		Text: "hi", Quote: &sessions.Quote{ID: "q", Text: "said"}, Mentioned: []sessions.UserID{"v"}, SentAt: at, ReceivedAt: at, Webhook: "https://x",
		Scheduled: &sessions.Scheduled{ID: 3, Kind: sessions.Remind, DueAt: at}, Outcome: sessions.Limited, Next: 4,
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"robot_code":"r","conversation_id":"c","conversation_type":"2","msg_id":"m","sender_id":"u","staff_id":"u","encrypted_id":"$:e","kind":"text",` +
		`"text":"hi","quote":{"msg_id":"q","text":"said"},"mentioned":["v"],"sent_at":"2026-11-20T09:00:00Z","webhook":"https://x",` +
		`"scheduled":{"id":3,"kind":"remind","due_at":"2026-11-20T09:00:00Z"},"outcome":"limited","next":4}`
	if string(b) != want {
		t.Errorf("a message is stored as\n%s, want\n%s", b, want)
	}
	var back sessions.Message
	if err := json.Unmarshal(b, &back); err != nil || !back.ReceivedAt.IsZero() || back.Quote.ID != "q" || back.Scheduled.ID != 3 {
		t.Errorf("it is read as %+v (%v)", back, err)
	}
}
