package main

import (
	"context"
	"fmt"
	"strings"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/openai/openaitest"
	"ebb/cmd/lab/rig"
	"ebb/sessions"
)

// repliesPerMinute exceeds DingTalk's limit: a day of talk takes seconds.
const repliesPerMinute = 6000

type group struct{ id, title string }

func (g group) key() sessions.Key {
	return sessions.NewKey(rig.RobotCode, sessions.ConversationID(g.id), "")
}

var (
	release = group{"cidRelease==", "支付网关 2.4 发布"}
	longest = group{"cidLongest==", "跨部门长期协作群：支付、风控、清结算、渠道接入、客服与运营同学共同维护的发布窗口与应急值班沟通群（勿删）"}
	english = group{"cidEnglish==", "Checkout on-call"}
)

// verbose has the longest name that DingTalk admits, in one word.
var verbose = rig.Person{ID: "u-verbose", Name: "欧阳娜娜VeryLongNickname_OperationsAndSettlementTeam_Shanghai"}

const (
	orderNumber = "PO-20260315-7781"
	orderAsked  = "供应商的对账订单号是多少？"
	forgetful   = "抱歉，我这里没有查到供应商的对账订单号，麻烦再发一次。"
)

var facts = []rig.Utterance{
	{Speaker: rig.Zhang, Text: "大家好，支付网关 2.4 的发布日期定在 5 月 20 日晚上八点，窗口两小时。"},
	{Speaker: rig.Li, Text: "这次发布由我李娜负责，回滚由 Alex 负责。"},
	{Speaker: rig.Alex, Text: "供应商的对账订单号是 " + orderNumber + "，5 月 18 日截止。"},
	{Speaker: rig.Zhang, Text: "我偏好先看结论，再看细节，周报一页以内。"},
}

// logLine repeated is hugeMessage of 20,000 characters.
const logLine = "压测日志：每秒请求数、平均响应与错误率都在正常范围内，没有发现内存泄漏。"

var hugeMessage = strings.Repeat(logLine+"\n", 540)

func dingtalkOptions() dingtalktest.Options {
	o := dingtalktest.Fast()
	o.WebhookPerMinute = repliesPerMinute
	for _, p := range []rig.Person{rig.Zhang, rig.Li, rig.Alex, verbose} {
		o.Users = append(o.Users, dingtalktest.User{StaffID: p.ID, Nick: p.Name})
	}
	for _, g := range []group{release, longest, english} {
		o.Groups = append(o.Groups, dingtalktest.Group{ID: g.id, Title: g.title, Members: []string{rig.Zhang.ID, rig.Li.ID, rig.Alex.ID, verbose.ID}})
	}
	return o
}

// summary lacks the order number, which the gateway's check puts back.
const summary = `## 进行中的工作
- 支付网关 2.4 的联调与压测：收单、退款、查询三条链路已通，五条用例待重跑
## 待办与承诺
- 联调环境换成 pay-stage-2，旧的今晚下线（李娜）
- 三个缺中文说明的错误码要补上，超时时间挪到配置中心（张伟）
## 已完成
- 回切脚本演练过，用了三分四十秒；两个太敏感的告警阈值已放宽
## 决定与约束
- 发布日期定在 5 月 20 日晚上八点，窗口两小时；发布由李娜负责，回滚由 Alex 负责
## 未决问题
- 无
## 用户与偏好
- 张伟偏好先看结论，再看细节，周报一页以内
## 关键标识
- pay-stage-2、5 月 20 日`

// The model forgets the order number. The stand-in's rules answer the rest.
func script() []openaitest.Script {
	summarizes := func(r openaitest.Request) bool {
		text := r.Text()
		return len(r.Tools) == 0 && !strings.Contains(text, logLine) && (strings.Contains(text, "你在整理一段群聊的历史") || strings.Contains(text, "你在修订一份聊天记录的摘要"))
	}
	return []openaitest.Script{
		openaitest.WhenFunc(rig.MatchQuestion(orderAsked), func(openaitest.Request) openaitest.Reply { return openaitest.Text(forgetful) }),
		openaitest.WhenFunc(summarizes, func(openaitest.Request) openaitest.Reply { return openaitest.Text(summary) }),
	}
}

// An empty group is the person's private chat.
func (r *replica) ask(ctx context.Context, g group, by rig.Person, text string) error {
	m := dingtalktest.Message{Conversation: g.id, Sender: by.ID, Text: text, Direct: g.id == ""}
	conversation := g.id
	if m.Direct {
		conversation = dingtalktest.DirectConversation(by.ID)
	}
	id := r.dingtalk.Say(m)
	if _, err := r.dingtalk.WaitAck(ctx, id); err != nil {
		return fmt.Errorf("%.60s is not acknowledged: %w", text, err)
	}
	for {
		seen := r.dingtalk.State().Replies
		for _, reply := range r.dingtalk.Shown(conversation) {
			if reply.MsgID == id {
				return nil
			}
		}
		err := r.dingtalk.WaitFor(ctx, fmt.Sprintf("an answer to %.60s", text), func(s dingtalktest.State) bool { return s.Replies > seen })
		if err != nil {
			return err
		}
	}
}
