package reconcile

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ebb/memory"
	"ebb/memory/memorytest"
	"ebb/memory/text"
	"ebb/sessions"
)

// Two wordings are one fact where they differ in nothing that counts.
func TestNearDuplicates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stored, said string
		same         bool
	}{
		{"The release of project Orion is planned for Friday in Shanghai", "The release of project Orion was planned for Friday in Shanghai", true},
		{"项目 Alpha 的发布日期定在 2026 年 12 月 1 日，由张伟和李雷共同负责验收", "项目Alpha的发布日期定在了2026年12月1日，由张伟和李雷共同负责验收！", true},
		{"Deployments to production happen every Thursday afternoon at four", "Deployment to production happen every Thursday afternoon at four", true},
		{"The release of project Orion is planned for 2026-11-27 in Shanghai", "The release of project Orion is planned for 2026-11-28 in Shanghai", false},
		{"The budget of the Shanghai project is 2000000 yuan this year", "The budget of the Shanghai project is 3000000 yuan this year", false},
		{"服务器 prod-7 的维护窗口定在每周三凌晨两点到四点", "服务器 prod-8 的维护窗口定在每周三凌晨两点到四点", false},
		{"服务器机房的维护窗口定在每周三凌晨两点到四点进行", "服务器机房的维护窗口定在每周四凌晨两点到四点进行", false},
		{"上海办公室的第三季度差旅预算由张伟负责审批和跟进落实", "上海办公室的第三季度差旅预算由李雷负责审批和跟进落实", false},
		{"生产环境的数据库变更可以在工作日的白天直接执行上线", "生产环境的数据库变更不可以在工作日的白天直接执行上线", false},
		{"Changes of the production database may be made during working hours", "Changes of the production database may not be made during working hours", false},
		{"the plan holds", "the plan", false},
	} {
		var l Ledger
		l.Add(memory.Memory{ID: 1, Content: c.stored, CreatedAt: memorytest.Noon})
		if got := l.Decide(memory.Draft{Content: c.said, SaidAt: memorytest.Noon}).Same == 1; got != c.same {
			t.Errorf("%q and %q: the same %v, want %v", c.stored, c.said, got, c.same)
		}
	}
}

// A content is a correction by its words only if it names the corrected thing.
func TestCorrections(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stored, said string
		corrected    bool
	}{
		{"发布日期是 2026-12-01", "发布日期改为 2026-12-05", true},
		{"发布日期是 2026-12-01", "更正：因为测试延期，发布日期改到 2026-12-05", true},
		{"周会在周三", "周会改为周四", true},
		{"预算是 100 万", "预算调整为 200 万", true},
		{"The release date is 2026-12-01", "Correction: the release date is 2026-12-05, not 2026-12-01", true},
		{"Alice lives in Paris", "Alice no longer lives in Paris, she moved to Berlin", true},
		{"发布日期是 2026-12-01", "发布日期是 2026-12-05", false}, // nothing says that it is one
		{"发布日期是 2026-12-01", "评审日期改为 2026-12-05", false},
		{"张伟的工位在 A3", "李雷的工位改到 B12", false},
		{"北京办公室第三季度市场部差旅预算是 100 万", "上海办公室第三季度市场部差旅预算改为 200 万", false},
		{"Bob's phone number is 444", "Actually Alice's phone number is 555", false},
		{"张伟是经理", "更正：张伟在休假", false},
		{"王芳在学法语，每天半小时", "王芳去青岛的高铁改为 G2093", false}, // the same person, another fact
		{"张伟是 2019 年入职的", "张伟的工位改为 217", false},
		{"Bob Smith is in room 30", "Bob Smith's desk is now number 217", false},
		{"张伟的工位是 212", "因为装修，张伟的工位改为 217", true},
		{"张伟的工位是 212", "更正：张伟的工位在 217", true},
		{"发布日期是 2026-12-01。预算是 100 万", "发布日期改为 2026-12-05", false}, // the rest of it holds
	} {
		var l Ledger
		l.Add(memory.Memory{ID: 1, Content: c.stored, SaidAt: memorytest.Noon})
		v := l.Decide(memory.Draft{Content: c.said, SaidAt: memorytest.Noon.Add(time.Hour)})
		if got := slices.Contains(v.Supersedes, 1); got != c.corrected || v.Same != 0 || v.By != 0 {
			t.Errorf("%q after %q: %+v, want it corrected: %v", c.said, c.stored, v, c.corrected)
		}
		v = l.Decide(memory.Draft{Content: c.said, SaidAt: memorytest.Noon.Add(-time.Hour)})
		if len(v.Supersedes) != 0 {
			t.Errorf("%q, said before %q, corrects it", c.said, c.stored)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, same := range [][2]string{{"Release_Date", "release date"}, {"发布 日期", "发布日期"}, {"ＲＥＬＥＡＳＥ－date", "release date"}} {
		if text.NormalizeKey(same[0]) != text.NormalizeKey(same[1]) {
			t.Errorf("%q and %q are two keys", same[0], same[1])
		}
	}
	if text.NormalizeKey("alpha date") == text.NormalizeKey("beta date") || text.NormalizeKey(" _ ") != "" {
		t.Error("keys that differ are one, or nothing is one")
	}
}

// A key such as "owner" can be that of many things. Another value of it corrects values of the same thing, and none of
// another one.
func TestKeysOfManyThings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, stored, said string
		corrected         bool
	}{
		{"负责人", "Alpha 项目的负责人是李娜", "打印机的负责人是王芳", false},
		{"owner", "The owner of the parser is Ingrid", "The owner of the scheduler is Tom", false},
		{"deadline", "The deadline of Alpha is Friday", "The deadline of Beta is Monday", false},
		{"发布日期", "网关的发布日期是 2026-12-01", "更正：账单系统的发布日期改为 2026-12-05", false},
		{"工位", "张伟的工位是 A3", "李雷的工位改到 B12", false},
		{"端口", "测试环境的端口是 8080", "生产环境的端口是 9090", false},
		{"wifi 名称", "上海办公室的 wifi 名称是 ebb-sh", "北京办公室的 wifi 名称是 ebb-bj", false},
		{"端口", "测试环境的端口是 8080", "测试环境端口现在是 9090", true},
		{"release date", "The release date of the Orion launch is 2026-12-01", "Orion's planned release date is 2026-12-05", true},
		{"负责人", "Alpha 项目的负责人是李娜", "Alpha 负责人改为王芳", true},
		{"负责人", "Alpha 项目的负责人是李娜", "张伟说：Alpha 负责人改为王芳", true},
		{"owner", "The owner of the parser component is Ingrid", "The parser owner is now Tom", true},
		{"发布日期", "Alpha 的发布日期是 2026-12-01", "因为测试延期，发布日期改为 2026-12-05", true}, // which thing is not said
		{"发布日期", "发布日期是 2026-12-01", "Alpha 的发布日期是 2026-12-05", true},
		{"发布日期", "Alpha 项目的发布日期定在 2026-12-01", "我们 Alpha 的最终发布日期是 2026-12-05", true},
		{"release date", "we ship on 2026-12-01", "shipping is on 2026-12-05", true},
		{"周会时间", "周会时间是周三", "更正：周会时间改到周四", true},
		{"数据库", "数据库是 MySQL", "目前数据库是 Postgres", true},
	} {
		var l Ledger
		l.Add(memory.Memory{ID: 1, Content: c.stored, Key: text.NormalizeKey(c.key), SaidAt: memorytest.Noon})
		v := l.Decide(memory.Draft{Content: c.said, Key: c.key, SaidAt: memorytest.Noon.Add(time.Hour)})
		if got := slices.Contains(v.Supersedes, 1); got != c.corrected || v.Same != 0 || v.By != 0 {
			t.Errorf("%s: %q after %q: %+v, want it corrected: %v", c.key, c.said, c.stored, v, c.corrected)
		}
	}
}

// The same statement about two people is two facts; if the subject of one is unknown, it is one.
func TestTwoPeopleOneWording(t *testing.T) {
	t.Parallel()
	var l Ledger
	l.Add(memory.Memory{ID: 1, Content: "下周休假", SubjectID: "u1", SaidAt: memorytest.Noon})
	for who, same := range map[sessions.UserID]int64{"u1": 1, "u2": 0, "": 1} {
		if v := l.Decide(memory.Draft{Content: "下周休假。", SubjectID: who, SaidAt: memorytest.Noon.Add(time.Hour)}); v.Same != same || len(v.Supersedes) > 0 {
			t.Errorf("of %q: %+v, want %d", who, v, same)
		}
	}
}

// The values of one thing are extracted from the log in any order, and any number of times. The one that was said last
// is in force, alone, and every superseded row leads to it.
func TestTheLastValueIsInForce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := []string{"the release is on 2026-12-01", "the release is on 2026-12-02", "the release is on 2026-12-03"}
		n := rapid.IntRange(1, 6).Draw(t, "statements")
		var statements []memory.Draft
		for i := range n {
			statements = append(statements, memory.Draft{
				Scope: memory.ScopeGroup, Key: "release date", Content: values[rapid.IntRange(0, 2).Draw(t, "value")], SaidAt: memorytest.Noon.Add(time.Duration(i) * time.Hour),
			})
		}
		var rows []memory.Memory
		read := func(d memory.Draft) {
			var l Ledger
			for _, m := range rows {
				l.Add(m)
			}
			v := l.Decide(d)
			if v.Same != 0 {
				return
			}
			id := int64(len(rows) + 1)
			for i := range rows {
				if slices.Contains(v.Supersedes, rows[i].ID) {
					rows[i].SupersededBy = id
				}
			}
			rows = append(rows, memory.Memory{ID: id, Content: d.Content, Key: text.NormalizeKey(d.Key), SaidAt: d.SaidAt, SupersededBy: v.By})
		}
		for _, at := range rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 12).Draw(t, "read") {
			read(statements[at])
		}
		for _, d := range statements {
			read(d)
		}
		force := slices.DeleteFunc(slices.Clone(rows), func(m memory.Memory) bool { return m.SupersededBy != 0 })
		if len(force) != 1 || force[0].Content != statements[n-1].Content {
			t.Fatalf("in force is %+v, the last that was said is %q; rows %+v", force, statements[n-1].Content, rows)
		}
		before := len(rows)
		for _, d := range statements {
			read(d)
		}
		if len(rows) != before {
			t.Fatalf("to read it all again changed something: %+v", rows)
		}
	})
}
