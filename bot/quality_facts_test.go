package bot_test

import (
	"fmt"
	"time"

	"ebb/memory"
)

// plant is a fact that a person states, with its corrections, and the questions about it long after.
type plant struct {
	room       int // room of the statement
	by         string
	lang       string
	own        bool        // the speaker is its subject
	about      string      // word that an answer has beside the value
	statements []statement // the fact, then what it was corrected to
	asks       [2]string
}

// telling is a fact as it is said and as a model stores it.
type statement struct {
	said, content, value string

	kind     memory.Kind
	key      string
	subject  string
	replaces bool // the model names the memory that it corrects, where it is shown
	// day is the date that the words of a relative one mean; then there is no value.
	day func(said time.Time) time.Time
}

// last is what holds in the end.
func (p plant) last() statement { return p.statements[len(p.statements)-1] }

// How a model shows that a fact is corrected.
const (
	byKey     = "key"      // it gives both one key
	bySubject = "subject"  // and says whom they are about, who is another person each time
	byNumber  = "replaces" // it names the old one's number
	byWords   = "words"    // by how it puts the new one
)

// form is a kind of fact that things have: %[1]s is the thing, %[2]s its value.
type form struct {
	lang          string
	kind          memory.Kind
	said, fixed   string // in the chat: the fact, and its correction
	content, then string // in the memory
	key           string
	asks          [2]string
}

var (
	portZH = form{
		lang: "zh", kind: memory.KindFact, said: "跟大家说一声，%[1]s服务跑在 %[2]s 端口上", fixed: "刚才说的不对，%[1]s服务换到 %[2]s 端口了",
		content: "%[1]s服务的端口是 %[2]s", then: "%[1]s服务的端口改为 %[2]s", key: "%[1]s服务端口",
		asks: [2]string{"%[1]s服务用的是哪个端口？", "%[1]s的端口号是多少"},
	}
	portEN = form{
		lang: "en", kind: memory.KindFact, said: "fyi the %[1]s service listens on %[2]s", fixed: "we had to move the %[1]s service, it listens on %[2]s now",
		content: "The port of the %[1]s service is %[2]s.", then: "The port of the %[1]s service is now %[2]s.", key: "%[1]s service port",
		asks: [2]string{"Which port does the %[1]s service use?", "port number of %[1]s"},
	}
	ownerZH = form{
		lang: "zh", kind: memory.KindDecision, said: "%[1]s模块以后%[2]s来管，有问题直接找", fixed: "%[1]s模块交接完了，换%[2]s来管",
		content: "%[1]s模块的负责人是%[2]s", then: "%[1]s模块的负责人改为%[2]s", key: "%[1]s模块负责人",
		asks: [2]string{"谁负责%[1]s模块？", "%[1]s模块出了问题该找哪一位"},
	}
	ownerEN = form{
		lang: "en", kind: memory.KindDecision, said: "%[2]s takes care of the %[1]s component from today", fixed: "change of plans, %[2]s takes care of the %[1]s component",
		content: "The owner of the %[1]s component is %[2]s.", then: "The owner of the %[1]s component is now %[2]s.", key: "%[1]s component owner",
		asks: [2]string{"Who owns the %[1]s component?", "who is responsible for %[1]s"},
	}
	holderZH = form{
		lang: "zh", kind: memory.KindFact, said: "%[1]s模块以后%[2]s来管，有问题直接找", fixed: "%[1]s模块交接完了，换%[2]s来管",
		content: "%[2]s负责%[1]s模块", then: "%[1]s模块现在由%[2]s负责", key: "%[1]s模块负责人", asks: ownerZH.asks,
	}
	holderEN = form{
		lang: "en", kind: memory.KindFact, said: "%[2]s takes care of the %[1]s component from today", fixed: "change of plans, %[2]s takes care of the %[1]s component",
		content: "%[2]s owns the %[1]s component.", then: "%[2]s now owns the %[1]s component.", key: "%[1]s component owner", asks: ownerEN.asks,
	}
	dateZH = form{
		lang: "zh", kind: memory.KindDecision, said: "客户回信了，%[1]s项目%[2]s验收", fixed: "客户又来信，%[1]s项目要到%[2]s才验收",
		content: "%[1]s项目的验收日期是%[2]s", then: "%[1]s项目的验收日期改到%[2]s", key: "%[1]s项目验收日期",
		asks: [2]string{"%[1]s项目什么时候验收？", "%[1]s的验收安排在哪一天"},
	}
	dateEN = form{
		lang: "en", kind: memory.KindDecision, said: "the board meets on %[2]s for the %[1]s audit", fixed: "the board can't make it, so the %[1]s audit happens on %[2]s",
		content: "The %[1]s audit is on %[2]s.", then: "The %[1]s audit is moved to %[2]s.", key: "%[1]s audit date",
		asks: [2]string{"When is the %[1]s audit?", "date of the %[1]s audit"},
	}
	linkZH = form{
		lang: "zh", kind: memory.KindFact, said: "%[1]s的设计文档放这儿了 %[2]s 随时可以改", content: "%[1]s的设计文档地址：%[2]s", key: "%[1]s设计文档",
		asks: [2]string{"%[1]s的设计文档在哪里？", "%[1]s设计文档的链接发我一下"},
	}
	linkEN = form{
		lang: "en", kind: memory.KindFact, said: "new home of the %[1]s runbook: %[2]s", content: "The runbook for %[1]s lives at %[2]s", key: "%[1]s runbook",
		asks: [2]string{"Where is the %[1]s runbook?", "link to the runbook of %[1]s"},
	}
	choiceZH = form{
		lang: "zh", kind: memory.KindDecision, said: "讨论下来，%[1]s就上%[2]s，大家按这个准备", content: "团队决定%[1]s采用%[2]s", key: "%[1]s选型",
		asks: [2]string{"%[1]s最后选了哪个？", "我们的%[1]s用的是什么方案"},
	}
	choiceEN = form{
		lang: "en", kind: memory.KindDecision, said: "ok so we go with %[2]s for %[1]s", content: "Decision: %[2]s is used for %[1]s.", key: "%[1]s choice",
		asks: [2]string{"What did we choose for %[1]s?", "which tool is used for %[1]s"},
	}
	releaseZH = form{
		lang: "zh", kind: memory.KindTask, said: "%[1]s版本%[2]s发布，测试抓紧", content: "%[1]s版本%[2]s发布",
		asks: [2]string{"%[1]s版本哪天发布？", "%[1]s什么时候上线发布"},
	}
	releaseEN = form{
		lang: "en", kind: memory.KindDecision, said: "%[1]s ships %[2]s, no more scope", content: "%[1]s ships %[2]s.",
		asks: [2]string{"When does %[1]s ship?", "on which date do we ship %[1]s"},
	}
)

// cast chooses the things of a form that are said in a room, with their values; those that have more than one are
// corrected.
type cast struct {
	form
	how    string // a correction shows
	things [][]string
}

var casts = [2][]cast{
	{
		{portZH, byKey, [][]string{{"订单", "7031", "7104", "7168"}, {"库存", "7215"}, {"结算", "7349"}}},
		{portEN, byWords, [][]string{{"billing", "5512", "5563"}, {"ledger", "5619"}, {"catalog", "5708"}}},
		{ownerZH, byNumber, [][]string{{"登录", "孙浩", "周敏", "孙浩"}, {"报表", "吴迪"}, {"搜索", "冯媛"}}},
		{holderEN, bySubject, [][]string{{"parser", "Alice", "Ingrid"}, {"scheduler", "Tomasz"}, {"renderer", "Yusuf"}}},
		{dateZH, byWords, [][]string{{"海棠", "2027年3月4日", "2027年4月9日"}, {"青松", "2027年5月21日"}, {"白鹭", "2027年6月17日"}}},
		{dateEN, byNumber, [][]string{{"Falcon", "2027-03-12", "2027-04-23"}, {"Osprey", "2027-05-07"}, {"Kestrel", "2027-06-25"}}},
		{linkZH, byKey, [][]string{{"会员中心", "https://docs.example.com/d/8f3k2"}, {"优惠券", "https://docs.example.com/d/p41xz"}, {"积分商城", "https://docs.example.com/d/m77qa"}}},
		{linkEN, byKey, [][]string{{"failover", "https://wiki.example.org/rb/41"}, {"backfill", "https://wiki.example.org/rb/58"}, {"cutover", "https://wiki.example.org/rb/93"}}},
		{choiceZH, byKey, [][]string{{"消息队列", "RocketMQ"}, {"日志采集", "Vector"}, {"配置中心", "Apollo"}}},
		{choiceEN, byKey, [][]string{{"feature flags", "Unleash"}, {"tracing", "Tempo"}, {"load tests", "Gatling"}}},
	},
	{
		{portZH, byNumber, [][]string{{"风控", "6021", "6077"}, {"推送", "6134"}, {"画像", "6205"}}},
		{portEN, byKey, [][]string{{"mailer", "4416", "4471"}, {"indexer", "4520"}, {"archiver", "4633"}}},
		{holderZH, bySubject, [][]string{{"支付", "褚强", "赵敏"}, {"权限", "蒋欣"}, {"消息", "沈括"}}},
		{ownerEN, byWords, [][]string{{"importer", "Marisol", "Leopold"}, {"exporter", "Kwame"}, {"notifier", "Sigrid"}}},
		{dateZH, byKey, [][]string{{"玄武", "2027年7月8日", "2027年8月12日"}, {"赤兔", "2027年9月2日"}, {"麒麟", "2027年9月16日"}}},
		{dateEN, byWords, [][]string{{"Merlin", "2027-07-15", "2027-08-26"}, {"Heron", "2027-09-09"}, {"Curlew", "2027-09-30"}}},
		{linkZH, byKey, [][]string{{"客服工作台", "https://docs.example.com/d/k29vt"}, {"售后流程", "https://docs.example.com/d/w60hn"}, {"发票中心", "https://docs.example.com/d/z18cb"}}},
		{linkEN, byKey, [][]string{{"restore", "https://wiki.example.org/rb/112"}, {"rotation", "https://wiki.example.org/rb/127"}, {"paging", "https://wiki.example.org/rb/140"}}},
		{choiceZH, byKey, [][]string{{"前端框架", "SolidJS"}, {"接口网关", "APISIX"}, {"分析数据库", "ClickHouse"}}},
		{choiceEN, byKey, [][]string{{"image resizing", "imgproxy"}, {"chat widgets", "Chatwoot"}, {"status pages", "Upptime"}}},
	},
}

// release is a shipment on a day in relative words.
type release struct {
	form
	thing, words string
	day          func(said time.Time) time.Time
}

var releases = [2][]release{
	{
		{releaseZH, "扶桑", "下周五", weekday(1, time.Friday)},
		{releaseZH, "昆仑", "后天", daysAfter(2)},
		{releaseEN, "Bluebird", "next Tuesday", weekday(1, time.Tuesday)},
		{releaseEN, "Kingfisher", "tomorrow", daysAfter(1)},
	},
	{
		{releaseZH, "蓬莱", "下周三", weekday(1, time.Wednesday)},
		{releaseZH, "瀛洲", "大后天", daysAfter(3)},
		{releaseEN, "Nightjar", "next Friday", weekday(1, time.Friday)},
		{releaseEN, "Sandpiper", "in three days", daysAfter(3)},
	},
}

// daysAfter is the date a number of days after the statement.
func daysAfter(n int) func(time.Time) time.Time {
	return func(said time.Time) time.Time { return said.AddDate(0, 0, n) }
}

// weekday is the date of a day of the week, a number of weeks after the one of the statement. Weeks begin on Monday.
func weekday(weeks int, day time.Weekday) func(time.Time) time.Time {
	fromMonday := func(d time.Weekday) int { return (int(d) + 6) % 7 }
	return func(said time.Time) time.Time {
		return said.AddDate(0, 0, 7*weeks+fromMonday(day)-fromMonday(said.Weekday()))
	}
}

// plants are all facts, in an order that is independent of the order of their statements.
func plants() []plant {
	var all []plant
	for room := range casts {
		for _, c := range casts[room] {
			for _, thing := range c.things {
				all = append(all, c.plant(room, thing[0], thing[1:]))
			}
		}
		for _, r := range releases[room] {
			t := statement{said: fmt.Sprintf(r.said, r.thing, r.words), content: fmt.Sprintf(r.content, r.thing, r.words), kind: r.kind, day: r.day}
			all = append(all, plant{room: room, lang: r.lang, about: r.thing, statements: []statement{t}, asks: r.ask(r.thing)})
		}
	}
	return append(all, personal...)
}

func (f form) ask(thing string) [2]string {
	// Every form of a question takes the thing alone.
	return [2]string{fmt.Sprintf(f.asks[0], thing), fmt.Sprintf(f.asks[1], thing)}
}

func (c cast) plant(room int, thing string, values []string) plant {
	p := plant{room: room, lang: c.lang, about: thing, asks: c.ask(thing)}
	for i, v := range values {
		t := statement{said: fmt.Sprintf(c.said, thing, v), content: fmt.Sprintf(c.content, thing, v), kind: c.kind, value: v}
		if i > 0 {
			t.said, t.content = fmt.Sprintf(c.fixed, thing, v), fmt.Sprintf(c.then, thing, v)
		}
		switch c.how {
		case byKey, bySubject:
			t.key = fmt.Sprintf(c.key, thing)
		case byNumber:
			t.replaces = i > 0
		}
		if c.how == bySubject {
			t.subject = v
		}
		p.statements = append(p.statements, t)
	}
	return p
}
