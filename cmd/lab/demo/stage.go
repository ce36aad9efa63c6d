package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/openai/openaitest"
	"ebb/cmd/lab/local"
	"ebb/cmd/lab/rig"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/localpg"
)

// A small window is full after half a minute of talk, and a short lease is soon taken over. Replies exceed DingTalk's
// rate: an hour of talk takes half a minute.
const (
	demoThreshold  = 4000
	demoWindow     = 16_000
	demoShare      = 0.175 // a compaction leaves 0.7 of the threshold
	demoReserve    = 4000
	demoFlushRatio = 0.9
	demoLeaseTTL   = "3s"
	demoPerMinute  = 120
)

type stage struct {
	show     *screen
	dir      string // temporary
	program  string
	private  *localpg.Server
	url      string
	store    *sql.Store
	dingtalk *dingtalktest.Server
	model    *openaitest.Server
	book     *rig.LogBook
	children []*rig.Process
	followed chan struct{} // cards are no longer followed
	key      sessions.Key

	mu   sync.Mutex
	lost func(*rig.Process, error) // a gateway ended by itself
}

// onLoss replaces the function for gateways that end by themselves.
func (s *stage) onLoss(lost func(*rig.Process, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = lost
}

func (s *stage) reportLoss(c *rig.Process, err error) {
	s.mu.Lock()
	lost := s.lost
	s.mu.Unlock()
	lost(c, err)
}

// The caller closes the result even after an error. lost is called when a gateway ends by itself.
func openStage(ctx context.Context, program string, w *screen, lost func(error)) (s *stage, err error) {
	s = &stage{program: program, show: w, lost: func(_ *rig.Process, err error) { lost(err) }, book: rig.NewLogBook(), key: sessions.NewKey(rig.RobotCode, demoGroup, "")}
	if s.dir, err = local.MakeTempDir("ebb-demo-"); err != nil {
		return s, err
	}
	if s.private, err = local.StartServer(ctx, s.dir, true); err != nil {
		return s, err
	}
	s.url = s.private.URL()
	if s.store, err = sql.Open(ctx, sql.Options{URL: s.url, MaxConns: 4}); err != nil {
		return s, err
	}
	s.openStandIns()
	s.followed = s.followCards(ctx)
	return s, nil
}

func (s *stage) openStandIns() {
	users, ids := demoPeople()
	s.dingtalk = dingtalktest.New(dingtalktest.Options{
		Users: users, Groups: []dingtalktest.Group{{ID: string(demoGroup), Title: demoGroupTitle, Members: ids}},
		RedeliverAfter: 3 * time.Second, RedeliverMax: 3, WebhookPerMinute: demoPerMinute,
	})
	o := openaitest.Options{Steps: []openaitest.Script{openaitest.WhenFunc(matchQuestion(recallQuestion), fromMemory)}}
	if s.show.isTerminal() {
		o.Latency, o.TokenDelay = 250*time.Millisecond, 30*time.Millisecond
	}
	s.model = openaitest.New(o)
}

// close returns what did not end cleanly.
func (s *stage) close(ctx context.Context) error {
	err := rig.StopProcesses(ctx, s.children, 35*time.Second)
	if s.model != nil {
		s.model.Close()
	}
	if s.dingtalk != nil {
		s.dingtalk.Close()
	}
	if s.followed != nil {
		<-s.followed
	}
	if s.store != nil {
		s.store.Close()
	}
	return errors.Join(err, local.RemoveServer(ctx, s.private, s.dir))
}

func (s *stage) writeGatewayConfig(name string) (string, error) {
	type object = map[string]any
	c := object{
		"dingtalk": object{
			"client_id": rig.RobotCode, "client_secret": rig.AppSecret, "api_base": s.dingtalk.URL, "oapi_base": s.dingtalk.URL,
			"replies_per_minute": demoPerMinute, "reply": "card", "card_template_id": dingtalktest.DefaultCardTemplate,
			"card_interval": cardInterval.String(),
		},
		"llm": object{"models": []object{{
			"name": "main", "model": "scripted", "base_url": s.model.URL, "api_key": "none", "max_output": 2048,
		}}},
		"agent": object{"compaction": object{
			"auto_compact_threshold": demoThreshold, "context_window": demoWindow, "reserve_tokens": demoReserve,
			"max_history_share": demoShare, "flush_ratio": demoFlushRatio,
		}},
		"cluster":  object{"lease_ttl": demoLeaseTTL, "replica_id": "demo-" + name},
		"database": object{"url": s.url},
		"admin":    object{"listen": "127.0.0.1:0"},
		"log":      object{"level": "info", "format": "json"},
	}
	return rig.WriteConfig(s.dir, name, c)
}

// DingTalk has a connection to the returned gateway.
func (s *stage) startGateway(ctx context.Context, name string) (*rig.Process, error) {
	live := s.dingtalk.State().Live
	config, err := s.writeGatewayConfig(name)
	if err != nil {
		return nil, err
	}
	c, err := rig.StartProcess(name, s.program, config, s.book)
	if err != nil {
		return nil, err
	}
	s.children = append(s.children, c)
	starting, ended := context.WithCancelCause(ctx)
	defer ended(nil)
	go c.ReportLoss(func(err error) {
		ended(err)
		s.reportLoss(c, err)
	})
	s.show.showReplica(name, c.PID(), "启动中 starting", true)
	if err := s.dingtalk.WaitConns(starting, live+1); err != nil {
		return nil, fmt.Errorf("gateway %s does not connect: %w", name, cmp.Or(context.Cause(starting), err))
	}
	s.show.showReplica(name, c.PID(), "运行 running", true)
	return c, nil
}

// readSession is empty before the first message.
func (s *stage) readSession(ctx context.Context) (sessions.Session, error) {
	row, err := s.store.Sessions.Session(ctx, s.key)
	if errors.Is(err, sessions.ErrNotFound) {
		return sessions.Session{Key: s.key}, nil
	}
	return row, err
}

// countEvents returns the log's messages by id.
func (s *stage) countEvents(ctx context.Context) (map[string]sessions.Event, error) {
	list, err := s.store.Lists.Events(ctx, s.key, 0, 10_000)
	if err != nil {
		return nil, err
	}
	all := map[string]sessions.Event{}
	for _, e := range list {
		if e.Role == sessions.RoleUser {
			all[string(e.MsgID)] = e
		}
	}
	return all, nil
}

// The oldest memory comes first.
func (s *stage) listMemories(ctx context.Context) ([]memory.Memory, error) {
	r := memory.Reader{Key: s.key, Robot: rig.RobotCode, Conversation: demoGroup}
	list, err := s.store.Facts.Pinned(ctx, r, 1000)
	slices.Reverse(list)
	return list, err
}

// replyTo waits for the first reply to an acknowledged message, whose card is track.
func (s *stage) replyTo(ctx context.Context, msgID, track string) (dingtalktest.Shown, error) {
	for {
		seen := s.dingtalk.State().Replies
		if replies := s.repliesTo(msgID, track); len(replies) > 0 {
			return replies[0], nil
		}
		err := s.dingtalk.WaitFor(ctx, "a reply to message "+msgID, func(st dingtalktest.State) bool { return st.Replies > seen })
		if err != nil {
			return dingtalktest.Shown{}, err
		}
	}
}

// repliesTo are the finished card of a message, and replies by its webhook.
func (s *stage) repliesTo(msgID, track string) (replies []dingtalktest.Shown) {
	for _, r := range s.dingtalk.Shown(string(demoGroup)) {
		if r.MsgID == msgID || r.TrackID == track && r.State == dingtalktest.CardFinished {
			replies = append(replies, r)
		}
	}
	return replies
}
