package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ebb/cmd/lab/rig"
	"ebb/sessions"
	"ebb/sessions/retry"
	"ebb/sql/yardstick"
)

const (
	serverConversations = 50
	serverWarmRounds    = 5
	serverRounds        = 40
	// The server reports the time of its statements late, and what follows a turn comes later.
	serverLag = 1500 * time.Millisecond
)

// measureServer measures what PostgreSQL does for a turn, one at a time. The pages of the conversations are written whole, as after
// each checkpoint, before the measurement begins.
func (b *suite) measureServer(ctx context.Context) (figures []rig.Figure, err error) {
	in, err := b.openInside(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = rig.JoinStopError(err, in.stop()) }()
	in.say = fortyCharacters
	if _, err := b.serverTurns(ctx, in, serverWarmRounds); err != nil {
		return nil, err
	}
	if err := b.yard.Tidy(ctx); err != nil { // without statistics on rows the server reads whole tables
		return nil, err
	}
	if _, err := b.serverTurns(ctx, in, serverWarmRounds); err != nil {
		return nil, err
	}
	w, err := b.serverTurns(ctx, in, serverRounds)
	if err != nil {
		return nil, err
	}
	const turns = serverRounds * serverConversations
	cpu, statements, wal := w.CPU/turns, w.Statements/turns, float64(w.WAL)/turns
	return []rig.Figure{
		rig.Figure{Name: "server's CPU a turn", Measured: rig.FormatMillis(cpu), Target: "<= 1.4 ms"}.
			AtMost(float64(cpu), float64(1400*time.Microsecond)),
		{Name: "server's time in statements a turn", Measured: rig.FormatMillis(statements)},
		rig.Figure{
			Name: "write-ahead log a turn", Measured: fmt.Sprintf("%.1f KB", wal/1024), Target: "<= 5 KB",
			Ratio: fmt.Sprintf("%.2f whole pages a turn in it", float64(w.FullPages)/turns),
		}.AtMost(wal, 5*1024),
	}, nil
}

// serverTurns returns the server's work for some rounds over the conversations, and for what follows them.
func (b *suite) serverTurns(ctx context.Context, in *insideGateway, rounds int) (yardstick.Work, error) {
	before, err := b.yard.Work(ctx)
	if err != nil {
		return yardstick.Work{}, err
	}
	for range rounds {
		for c := range serverConversations {
			if _, err := in.runTurn(ctx, sessions.ConversationID(fmt.Sprintf("cid-server-%d", c))); err != nil {
				return yardstick.Work{}, err
			}
		}
	}
	if !retry.Sleep(ctx, serverLag) {
		return yardstick.Work{}, context.Cause(ctx)
	}
	after, err := b.yard.Work(ctx)
	if err != nil {
		return yardstick.Work{}, err
	}
	return after.Since(before), nil
}

// fortyCharacters composes different questions of common words, each of 40 characters.
func fortyCharacters(asked int) string {
	var t strings.Builder
	for i := range 8 {
		t.WriteString(serverPhrases[(asked*(2*i+1)+asked/len(serverPhrases)+5*i)%len(serverPhrases)])
	}
	return t.String()
}

// Each has five characters.
var serverPhrases = strings.Fields(`今天的会议 发布的窗口 回滚负责人 预算多少钱 客户在上海 合同已签署 数据库迁移 周五下午三 请提醒李娜 接口已联调
	退款的流程 测试的环境 版本号多少 上线前检查 报表要更新 供应商报价 仓库的库存 招聘的进度 服务器扩容 日志有报错
	监控的告警 密钥要轮换 培训的安排 差旅怎么报 审批到哪了 原型图确认 文档在哪里 代码的评审 性能不达标 需求有变更
	里程碑延期`)
