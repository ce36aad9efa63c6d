package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ebb/bot/config"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/openai/openaitest"
	"ebb/cmd/lab/labtest"
	"ebb/cmd/lab/rig"
)

// demoCommand is lab demo as a process of its own, whose temporary folder is watched: it has to leave nothing there.
func demoCommand(t *testing.T, args ...string) (cmd *exec.Cmd, stderr *bytes.Buffer) {
	t.Helper()
	program, err := exec.LookPath("lab") // the test binary under the program's name
	if err != nil {
		t.Fatal(err)
	}
	temp := labtest.OpenDir(t)
	cmd, stderr = exec.Command(program, append([]string{"--program", labtest.BuildBot(t), "demo"}, args...)...), &bytes.Buffer{}
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	cmd.Stderr = stderr
	t.Cleanup(func() {
		left, err := os.ReadDir(temp)
		if err != nil || len(left) > 0 {
			t.Errorf("the demo left %v in its folder (%v)", left, err)
		}
	})
	return cmd, stderr
}

func TestDemoOnce(t *testing.T) {
	t.Parallel()
	cmd, stderr := demoCommand(t, "--once")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("demo --once: %v\n%s\n%s", err, out, stderr)
	}
	from := 0
	for _, want := range []string{ // in this order
		"模拟器", "Scripted: the model",
		"张伟: ", "李娜: ", "Alex: ",
		"● 记忆整理 memory flush", "PO-20260315-7781",
		"● 压缩 compaction", "→", "flush: done before",
		recallQuestion.Text, "记忆里有", "5 月 20 日",
		"SIGTERM", "Shutdown memory flush summary", "owed 0", inFlight.Text,
		afterRestart.Text, "PO-20260315-7781",
		"kill -9", "Alex 负责",
		longReport.Text, "Ebb: 压测报告第一节", cursor, cutShort, "● 张伟按了停止",
		checklist.Text, "Ebb: " + checklistOpening, cursor, "八点开始", "● 李娜点了 👍", "谢谢",
		"✔ 丢失 lost", "✔ 重复回答 answered twice", "✔ 未结束的卡片 cards left unfinished", "✔ 钉钉协议违规 protocol violations", "✔ 全部符合预期",
	} {
		i := strings.Index(string(out[from:]), want)
		if i < 0 {
			t.Fatalf("no %q after what came before it in\n%s", want, out)
		}
		from += i
	}
	if stderr.Len() > 0 {
		t.Errorf("stderr: %s", stderr)
	}
}

var (
	linkRE = regexp.MustCompile(`http://\S+/login\?code=\w+`)
	pidRE  = regexp.MustCompile(`Gateway D runs \(PID (\d+)\)`)
	killRE = regexp.MustCompile(`kill -9 (\d+)`)
)

// follow loads a link as a browser without a cookie, and returns the status.
func follow(t *testing.T, link string) int {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// The person at the keyboard is a member of the group, who may stop an answer by its button or by the command. The end of
// the input ends the demo.
func TestDemoConverses(t *testing.T) {
	t.Parallel()
	cmd, stderr := demoCommand(t)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	giveUp := time.AfterFunc(3*time.Minute, func() { _ = cmd.Process.Kill() })
	defer giveUp.Stop()
	r, talk := bufio.NewReader(out), strings.Builder{}
	// await reads until the words appear behind those awaited before.
	await := func(want string) {
		t.Helper()
		from := talk.Len()
		for !strings.Contains(talk.String()[from:], want) {
			b, err := r.ReadByte()
			if err != nil {
				t.Fatalf("no %q in\n%s\n%s", want, talk.String(), stderr)
			}
			talk.WriteByte(b)
		}
	}
	await("全部符合预期")
	for _, step := range []struct{ typed, want string }{
		{"/状态\n", "上下文"},
		{"\n灰度是什么时候？\n", "5 月 19 日"},
		{"2秒后提醒我喝水\n", "提醒 #1 已设好"},
		{"", "⏰ 你：喝水"},
		{"/压缩\n", "压缩"},
		{"@Ebb /帮助\n", "`/提醒"},
		{":bad\n", "[bad] "},
		{"：good\n", "[good] "},
		{":nope\n", buttonsHelp},
		{"把压测报告从头念一遍？\n", "压测报告第一节"},
		{":stop\n", cutShort},
		{"Read me the load test report?\n", "Load test report"},
		{"/stop\n", "(stopped)"},
		{":stop\n", "[stop] "},
		{"Read me the load test report?\n", "Load test report"},
		{"stop\n", "(stopped)"},
		{"What is the supplier's order number?\n", "From memory: the supplier's order number is PO-20260315-7781"},
		{"Who does the rollback?\n", "Alex is responsible for the rollback"},
		{"When is the release?\n", "May 20 at 8 pm"},
		{"When does the gradual rollout begin?\n", "May 19 at 10 am"},
	} {
		if _, err := io.WriteString(in, step.typed); err != nil {
			t.Fatal(err)
		}
		await(step.want)
	}
	crash(t, in, await, talk.String)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(r)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		t.Errorf("demo: %v\n%s%s\n%s", err, talk.String(), rest, stderr)
	}
	// So soon after the story's own compaction there may be too little to gain: the bot says which.
	if !strings.Contains(talk.String(), "压缩完成") && !strings.Contains(talk.String(), "无需压缩") {
		t.Errorf("/compact was not answered in\n%s", talk.String())
	}
	if whole := talk.String() + string(rest); strings.Contains(whole, "no complete answer") {
		t.Errorf("a line waits for an answer that does not come in\n%s", whole)
	}
}

// crash kills the gateway during an answer: the next one goes on with it. A link to the console logs in once. The next one, and that of the
// gateway after a crash, come by themselves.
func crash(t *testing.T, in io.Writer, await func(string), whole func() string) {
	t.Helper()
	link := func() string {
		t.Helper()
		m := linkRE.FindAllString(whole(), -1)
		return m[len(m)-1]
	}
	if got := follow(t, link()); got != http.StatusSeeOther {
		t.Errorf("the link to the console is answered with %d", got)
	}
	await("The next link to the console: http://")
	await("\n")
	if got := follow(t, link()); got != http.StatusSeeOther {
		t.Errorf("the next link is answered with %d", got)
	}
	await("The next link to the console: http://")
	if _, err := io.WriteString(in, "Read me the load test report?\n"); err != nil {
		t.Fatal(err)
	}
	await("Load test report")
	pid, err := strconv.Atoi(killRE.FindStringSubmatch(whole())[1])
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
	await("Gateway C ended (signal: killed). No message is lost: D starts")
	await("1500 TPS")
	if !strings.Contains(whole(), "Gateway D runs (PID ") {
		t.Errorf("the start of the next gateway is not reported in\n%s", whole())
	}
	// A press and a line in the moment of a crash wait for the next gateway, which waits for no reader of its news.
	if pid, err = strconv.Atoi(pidRE.FindStringSubmatch(whole())[1]); err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, ":good\nWhen does the gradual rollout begin?\n"); err != nil {
		t.Fatal(err)
	}
	await("May 19 at 10 am")
}

// A signal in the middle of the story takes everything down: gateways, PostgreSQL, files.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	cmd, stderr := demoCommand(t, "--once")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	giveUp := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer giveUp.Stop()
	for sc := bufio.NewScanner(out); sc.Scan(); {
		if strings.Contains(sc.Text(), plantedFacts[0].Text) {
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Error(err)
			}
		}
	}
	err = cmd.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != rig.ExitFault || !strings.Contains(stderr.String(), "lab: demo: ended by interrupt") {
		t.Errorf("got %v and %q, want exit code 1 and the signal's name", err, stderr)
	}
}

// The end of the reader takes everything down as a signal does.
func TestDemoWithoutReader(t *testing.T) {
	t.Parallel()
	cmd, stderr := demoCommand(t, "--once")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	giveUp := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer giveUp.Stop()
	for sc := bufio.NewScanner(out); sc.Scan() && !strings.Contains(sc.Text(), plantedFacts[0].Text); {
	}
	if err := errors.Join(out.Close(), cmd.Wait()); err == nil || !strings.Contains(stderr.String(), "lab: demo: ended by the end of its output") {
		t.Errorf("got %v and %q", err, stderr)
	}
}

// A gateway that does not come up fails the story at once, with its name.
func TestDemoGatewayDies(t *testing.T) {
	t.Parallel()
	ctx, lost := context.WithCancelCause(t.Context())
	defer lost(nil)
	var out bytes.Buffer
	s := &stage{
		show: newShow(&out, labtest.MakeEnv()), dir: t.TempDir(), program: "false", book: rig.NewLogBook(), lost: func(_ *rig.Process, err error) { lost(err) },
		dingtalk: dingtalktest.New(dingtalktest.Fast()), model: openaitest.New(openaitest.Options{}),
	}
	defer s.model.Close()
	defer s.dingtalk.Close()
	_, err := s.startGateway(ctx, "A")
	cause := context.Cause(ctx)
	if err == nil || cause == nil || !strings.Contains(cause.Error(), "gateway A ended by itself: exit status 1") {
		t.Errorf("got %v and the cause %v", err, cause)
	}
}

// The next gateway starts while a line or a press waits for it, and no one reads the news.
func TestDemoRestartsUnread(t *testing.T) {
	t.Parallel()
	ctx, ended := context.WithCancelCause(t.Context())
	defer ended(nil)
	var out bytes.Buffer
	s := &story{stage: &stage{
		show: newShow(&out, labtest.MakeEnv()), dir: t.TempDir(), program: "false", book: rig.NewLogBook(), lost: func(_ *rig.Process, err error) { ended(err) },
		dingtalk: dingtalktest.New(dingtalktest.Fast()), model: openaitest.New(openaitest.Options{}),
	}}
	defer s.model.Close()
	defer s.dingtalk.Close()
	killed, err := rig.StartProcess("C", "false", "none", s.book)
	if err != nil {
		t.Fatal(err)
	}
	news := s.keepServing(ctx)
	s.reportLoss(killed, errors.New("killed"))
	select {
	case <-ctx.Done():
	case <-time.After(restartWithin):
		t.Fatal("the next gateway waits for a reader of its news")
	}
	if cause := context.Cause(ctx); !strings.Contains(cause.Error(), "gateway D") || len(news) != 1 {
		t.Errorf("got the cause %v and %d news", cause, len(news))
	}
}

// The config that gateways are started with is one that serve takes as it is, without a word of warning.
func TestDemoConfig(t *testing.T) {
	t.Parallel()
	s := &stage{
		dir: t.TempDir(), url: "postgres://somewhere/db", dingtalk: dingtalktest.New(dingtalktest.Fast()),
		model: openaitest.New(openaitest.Options{}),
	}
	defer s.model.Close()
	defer s.dingtalk.Close()
	path, err := s.writeGatewayConfig("A")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, labtest.MakeEnv(), config.NeedServe)
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Warnings) > 0 || cfg.Database.URL.Reveal() != s.url || cfg.Agent.Compaction.AutoCompactThreshold != demoThreshold {
		t.Errorf("got the warnings %q and %+v", cfg.Warnings, cfg)
	}
}

// People's pasted text must not hold the stand-in's form of a fact, or the flush would show it.
func TestDemoChatter(t *testing.T) {
	t.Parallel()
	model := openaitest.New(openaitest.Options{})
	defer model.Close()
	for _, f := range plantedFacts {
		if !isKept(t, model.URL, f.Utterance) || !strings.Contains(f.Text, f.proof) {
			t.Errorf("%q is no fact that holds %q", f.Text, f.proof)
		}
	}
	for _, u := range append(append([]rig.Utterance{}, rig.LongMessages...), rig.ShortMessages...) {
		if isKept(t, model.URL, u) {
			t.Errorf("the stand-in takes this for a fact: %s", u.Text)
		}
	}
}

// isKept asks the stand-in to flush one message, and reports whether it saves anything.
func isKept(t *testing.T, url string, u rig.Utterance) bool {
	t.Helper()
	type object = map[string]any
	body, err := json.Marshal(object{
		"model": "m", "messages": []object{{"role": "user", "content": u.Speaker.Name + "(" + u.Speaker.ID + "): " + u.Text}},
		"tools": []object{{"type": "function", "function": object{"name": "memory_save"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url+"/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Contains(answer, []byte(`nothing_to_save\":`)) {
		t.Fatalf("the stand-in answered %s, %v", answer, err)
	}
	return !bytes.Contains(answer, []byte(`nothing_to_save\":true`))
}

func TestSummaryIsTakenFromTheRequest(t *testing.T) {
	t.Parallel()
	content := "参考资料:\n<<<memory ab12\n- 张伟：发布日期定在 5 月 20 日\nmemory ab12>>>\n" +
		"<<<summary 1-18 cd34\n## 决定\n- 张伟：发布日期定在 5 月 21 日\nsummary 1-18 cd34>>>\n"
	r := openaitest.Request{Kind: openaitest.Chat, Messages: []openaitest.Message{
		{Role: "user", Content: content}, {Role: "user", Content: "李娜(u-lina): " + recallQuestion.Text},
	}}
	if got := fromMemory(r).Content(); !strings.Contains(got, "记忆里有") || !strings.Contains(got, "20 日") {
		t.Errorf("got %q, want the answer from memory", got)
	}
	if !strings.Contains(r.Messages[0].Content, "summary") {
		t.Error("the recorded request was changed")
	}
	if !matchQuestion(recallQuestion)(r) || matchQuestion(beforeKill)(r) {
		t.Error("asking does not separate questions")
	}
}

// A list keeps its first line when the mention before it is joined to the words.
func TestMentionIsJoined(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"@你 \n\n好的。": "@你 好的。", "@你 \n\n- 上下文：1\n- 策略：2": "@你\n- 上下文：1\n- 策略：2", "没有提到": "没有提到",
	} {
		if got := joinMention(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestReadable(t *testing.T) {
	t.Parallel()
	if got := readableText("@u-zhangwei @u-you \n\n好的。\n"); got != "@张伟 @你 \n\n好的。" {
		t.Errorf("got %q", got)
	}
}
