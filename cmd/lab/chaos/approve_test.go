package chaos

import (
	"strings"
	"testing"

	"ebb/sessions"
	"ebb/sql/inspect"
)

// Each case breaks one promise about approvals, or has a cause that excuses it.
func TestCheckerOfApprovals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		spoil func(*evidence)
		want  string
	}{
		{"approved and made", func(*evidence) {}, ""},
		{"approved and not made", func(e *evidence) { e.effects, e.results = nil, nil }, ""},
		{"made before", func(e *evidence) { e.effects[0].at = at(2900) }, "call T000001 (#1 of session robot/cid-a) ran 100ms before its approval"},
		{"made twice", func(e *evidence) { e.effects = append(e.effects, e.effects[0]) }, "call T000001 (ok) had its effect twice"},
		{"rejected and made", func(e *evidence) {
			e.approvals[0].State = sessions.ApprovalRejected
			e.decide("🚫 李娜 拒绝了 #1 `sound__sign`，没有执行。")
		}, "call T000001 (#1 of session robot/cid-a) is rejected, and it ran"},
		{"expired and made", func(e *evidence) {
			e.approvals[0].State = sessions.ApprovalExpired
			e.decide("⌛ #1 `sound__sign` 没有人决定，已经过期，没有执行。需要的话请再说一次。")
		}, "call T000001 (#1 of session robot/cid-a) is expired, and it ran"},
		{"made while it waits", func(e *evidence) { e.approvals[0].State = sessions.ApprovalWaiting }, "call T000001 (#1 of session robot/cid-a) is waiting, and it ran"},
		{"made without a request", func(e *evidence) { e.approvals = nil }, "call T000001 needs an approval, and it ran without a request for one"},
		{"decided by a stranger", func(e *evidence) { e.approvals[0].DecidedBy = "u-script-0009" }, "was decided by u-script-0009, who has no right"},
		{"decided by an administrator", func(e *evidence) { e.approvals[0].DecidedBy = sessions.UserID(chaosAdmin.ID) }, ""},
		{"never answered", func(e *evidence) { e.decide("- 上下文：10%") }, "call T000001 (#1 of session robot/cid-a) is approved, and 0 replies say so"},
		{"answered twice", func(e *evidence) {
			e.letters = append(e.letters, inspect.Letter{Key: groupA, Conversation: "cid-a", Text: e.letters[1].Text})
		}, "call T000001 (#1 of session robot/cid-a) is approved, and 2 replies say so"},
		{"waits for ever", func(e *evidence) { e.approvals[0].State, e.effects, e.results = sessions.ApprovalWaiting, nil, nil }, "call T000001 (#1 of session robot/cid-a) still waits"},
		{"a call without its result", func(e *evidence) { e.illegal = []string{"a request of chat: the last calls have no results"} }, "illegal request: a request of chat"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := wholeEvidence()
			e.ended = at(60_000)
			e.change("q0000001", func(r *remark) { r.wants = wantedCall{word: "T000001", server: sound, how: "ok", signs: true} })
			e.effects = []effect{{at: at(3100), word: "T000001", how: "ok", process: "g1-1", name: sound}}
			e.results = map[string]callResult{"T000001": {"g1-1", at(3200), "noted: ok T000001"}}
			e.approvals = []sessions.Approval{{
				Key: groupA, ID: 1, Arguments: `{"text":"ok T000001"}`, AskedBy: "u-script-0001", DecidedBy: "u-script-0001",
				State: sessions.ApprovalApproved, CreatedAt: at(200), DecidedAt: at(3000),
			}}
			e.decide("✅ 李娜 同意了 #1 `sound__sign`。\n\n- 上下文：10%")
			tt.spoil(e)
			got := e.checkAll().broken
			if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
				t.Errorf("found %q, want only %q", got, tt.want)
			}
		})
	}
}

// decide gives the command of the evidence another reply.
func (e *evidence) decide(text string) {
	e.letters[1].Text, e.replies[1].Text = text, text
	if !strings.Contains(text, e.log[4].Content) {
		e.log[4].Content = text
	}
}

// The words of a run find the requests and decisions in both languages.
func TestWordsOfApprovals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"🔐 等待批准 #12：李娜 的请求": "12", "🔐 Waiting for approval #3: the request of Alex": "3", "#3 已经过期": "",
	} {
		got := ""
		if m := approvalNumber.FindStringSubmatch(text); m != nil {
			got = m[1]
		}
		if got != want {
			t.Errorf("the number in %q is %q, want %q", text, got, want)
		}
	}
	const answer = "q0000001 周五"
	for _, lead := range []string{"✅ 李娜 同意了 #1 `a`。\n\n", "✅ 李娜 同意了 #1 `a`。\n✅ 李娜 同意了 #2 `b`。\n\n", "✅ Alex approved #1 `a`.\n\n"} {
		if got := withoutNote(lead + answer); got != answer {
			t.Errorf("without notes %q is %q, want %q", lead+answer, got, answer)
		}
	}
}
