package dates

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"ebb/memory/text/texttest"
)

// saturday is the day that the tables below speak on; the week began on the 16th.
var saturday = time.Date(2026, 11, 21, 23, 30, 0, 0, time.FixedZone("Shanghai", 8*3600))

func TestResolveDates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"明天发布":                      "明天（2026-11-22）发布",
		"今天定的":                      "今天（2026-11-21）定的",
		"今晚上线，明早验收":                 "今晚（2026-11-21）上线，明早（2026-11-22）验收",
		"后天交，大后天评审":                 "后天（2026-11-23）交，大后天（2026-11-24）评审",
		"昨天和前天都在出差":                 "昨天（2026-11-20）和前天（2026-11-19）都在出差",
		"明天下午3点开会":                  "明天（2026-11-22）下午3点开会",
		"明后两天休假":                    "明后两天（2026-11-22 至 2026-11-23）休假",
		"下周三交付":                     "下周三（2026-11-25）交付",
		"下周周三交付":                    "下周周三（2026-11-25）交付",
		"下下周一评审":                    "下下周一（2026-11-30）评审",
		"本周五已经发布":                   "本周五（2026-11-20）已经发布",
		"这周日值班":                     "这周日（2026-11-22）值班",
		"上周三定的":                     "上周三（2026-11-11）定的",
		"上个星期天去爬山":                  "上个星期天（2026-11-15）去爬山",
		"周一提测":                      "周一（2026-11-23）提测",
		"礼拜五交报告":                    "礼拜五（2026-11-27）交报告",
		"周三已经评审过了":                  "周三（2026-11-18）已经评审过了",
		"从周三改到周五":                   "从周三（2026-11-25）改到周五（2026-11-27）",
		"下周封版":                      "下周（2026-11-23 至 2026-11-29）封版",
		"下周末团建":                     "下周末（2026-11-28 至 2026-11-29）团建",
		"月底结账":                      "月底（2026-11-30）结账",
		"下个月底结账":                    "下个月底（2026-12-31）结账",
		"本月25号发工资":                  "本月25号（2026-11-25）发工资",
		"下个月3号上线":                   "下个月3号（2026-12-03）上线",
		"下月初搬家":                     "下月初（2026-12-01 至 2026-12-10）搬家",
		"下个月涨价":                     "下个月（2026-12）涨价",
		"3天后到期":                     "3天后（2026-11-24）到期",
		"３天后到期":                     "３天后（2026-11-24）到期",
		"三天前提的单":                    "三天前（2026-11-18）提的单",
		"十二天以后交":                    "十二天以后（2026-12-03）交",
		"两周后复查":                     "两周后（2026-12-05）复查",
		"半个月后见":                     "半个月后（2026-12-06）见",
		"3个月后续约":                    "3个月后（2027-02-21）续约",
		"年底冲刺":                      "年底（2026-12-31）冲刺",
		"明年扩招，去年没招":                 "明年（2027）扩招，去年（2025）没招",
		"明年3月5号年会":                  "明年3月5号（2027-03-05）年会",
		"去年12月入职":                   "去年12月（2025-12）入职",
		"下季度上":                      "下季度（2027-01-01 至 2027-03-31）上",
		"The demo is tomorrow.":     "The demo is tomorrow (2026-11-22).",
		"ship today":                "ship today (2026-11-21)",
		"the day after tomorrow":    "the day after tomorrow (2026-11-23)",
		"Yesterday we froze":        "Yesterday (2026-11-20) we froze",
		"deploy tonight":            "deploy tonight (2026-11-21)",
		"review next Friday":        "review next Friday (2026-11-27)",
		"due this Friday":           "due this Friday (2026-11-27)",
		"we met last Monday":        "we met last Monday (2026-11-16)",
		"ship on Friday":            "ship on Friday (2026-11-27)",
		"we shipped on Friday":      "we shipped on Friday (2026-11-20)",
		"On Friday we decided":      "On Friday (2026-11-20) we decided",
		"in 3 days":                 "in 3 days (2026-11-24)",
		"3 days ago":                "3 days ago (2026-11-18)",
		"in two weeks":              "in two weeks (2026-12-05)",
		"a month ago":               "a month ago (2026-10-21)",
		"next week":                 "next week (2026-11-23 to 2026-11-29)",
		"by the end of the month":   "by the end of the month (2026-11-30)",
		"next month":                "next month (2026-12)",
		"last year":                 "last year (2025)",
		"end of next quarter":       "end of next quarter (2027-03-31)",
		"Alice 说 next Friday 和后天都行": "Alice 说 next Friday (2026-11-27) 和后天（2026-11-23）都行",
	} {
		if got := Resolve(text, saturday); got != want {
			t.Errorf("ResolveDates(%q)\n got %q\nwant %q", text, got, want)
		}
	}
}

// Strip removes what Resolve added, a month or year included.
func TestStripRemovesResolvedDates(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"明天发布，下个月涨价，明年扩招", "下周封版", "The demo is tomorrow, next month or next year.", "下周末（暂定）团建", "明后两天休假，周三交",
		"本月31号盘点", "上个月30号盘点", "周三的口令（8246），明天换",
	} {
		resolved := Resolve(text, time.Date(2026, 12, 21, 9, 0, 0, 0, time.UTC))
		if got := Strip(resolved); resolved == text || got != text {
			t.Errorf("Strip(%q) = %q, want %q", resolved, got, text)
		}
	}
	for text, want := range map[string]string{"明年2月29日（2028-02-29）": "明年2月29日", "tomorrow （2026-11-22）": "tomorrow", "3年后(2029)": "3年后"} {
		if got := Strip(text); got != want {
			t.Errorf("Strip(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestStripLeavesOtherNumbers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"见 ISO 标准（2024 版）和 (1)", "大会议室的门禁密码（8246）", "李娜的分机（8021）", "the PIN (4711)", "明天（8246）", "tomorrow (4711)", "房间（2026-11）",
		"明年（2026-11-22）", "评审会（2026-11-25）", "文明（2026-11-22）", "5月2日周三（2026-05-02）", "每周三（2026-11-25）", "下周（2026-11-23）",
		"明天的口令（8246），后天的口令（9713）", "明天（ 2026-11-22）", "明天（2026-11-22 8246）",
	} {
		if got := Strip(text); got != text {
			t.Errorf("Strip(%q) = %q, want it left", text, got)
		}
	}
}

func TestSpanHolds(t *testing.T) {
	t.Parallel()
	for query, days := range map[string]map[string]bool{
		"5月2日":        {"2026-05-02": true, "2023-05-02": true, "2026-05-03": false, "2023-06-02": false},
		"2024年5月2日":   {"2024-05-02": true, "2023-05-02": false},
		"in May":      {"2026-05-31": true, "2021-05-01": true, "2026-06-01": false},
		"in May 2025": {"2025-05-01": true, "2024-05-01": false},
		"2月29日":       {"2024-02-29": true, "2023-03-01": false},
		"昨天":          {"2026-11-20": true, "2025-11-20": false, "2026-11-21": false},
	} {
		found := Find(query, saturday)
		if len(found) != 1 {
			t.Errorf("%q has the spans %v", query, found)
			continue
		}
		for day, want := range days {
			at, err := time.ParseInLocation(time.DateOnly, day, saturday.Location())
			if err != nil {
				t.Fatal(err)
			}
			if got := found[0].Holds(at.Add(23 * time.Hour).UTC()); got != want {
				t.Errorf("%q holds %s: %v", query, day, got)
			}
		}
	}
}

// Numbers of rooms and names of hosts are no dates.
func TestFindIgnoresNames(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"5号会议室谁订了", "3号仓的钥匙", "2号窗口", "monday.com 账号是谁管"} {
		if found := Find(query, saturday); len(found) > 0 {
			t.Errorf("%q has the spans %v", query, found)
		}
	}
	for _, query := range []string{"5号会下雨吗", "3号发布了什么", "who came on monday. Tell me", "what about Monday?"} {
		if found := Find(query, saturday); len(found) != 1 {
			t.Errorf("%q has the spans %v", query, found)
		}
	}
}

func TestIsTime(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"后天下午三点": true, "下周一(2026-11-23)上午十点": true, "11 月 30 日 10:00": true, "12月中旬": true, "每周三晚上": true, "国庆节后": true, "三天后": true,
		"monday 10:00": true, "december 8th": true, "8 december": true, "the end of next month": true, "2026-12-20": true, "q2": true, "3点半到5点": true,
		"五号会议室": false, "30 万": false, "10.0.0.2": false, "room 5": false, "张伟": false, "": false, "周五由王芳主持": false, "marching": false,
	} {
		if got := IsTime(text); got != want {
			t.Errorf("IsTime(%q) = %v", text, got)
		}
	}
}

func TestHasTimeWord(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"昨天发布": true, "5月的事": true, "in 2024": true, "last week": true, "3点见": true, "2024": true,
		"发布完成": false, "blasted 12345": false, "v1.2": false, "": false, "2024年度": true, "weekly": false,
	} {
		if got := HasTimeWord(text); got != want {
			t.Errorf("HasTimeWord(%q) = %v", text, got)
		}
	}
}

// Texts that have a date already, recur, or only look like a date.
func TestResolveDatesLeaves(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"明天（2026-11-22）发布", "tomorrow (2026-11-22)", "下周（2026-11-23 至 2026-11-29）", "明天(11月22日)发布", "2026-11-22（周日）",
		"11月25日周三评审", "Friday, November 27", "Friday, 27 Nov", "Nov 25 (Wednesday)", "2026-11-27 Friday",
		"每周五发周报", "周会周三", "周一到周五上班", "每周一、周三例会", "every Friday at 10", "Monday to Friday", "standup each Monday",
		"一周二次", "周末一般爬山", "office hours are Monday and Friday", "每月底结账", "每年底盘点",
		"请说明天气情况", "光明天使", "以前天天加班", "以后天天写", "先天后天", "文明年货", "过去年轻", "两天后端重构", "三天前端", "下周期", "这周围",
		"日本月饼", "第3天后", "下午开会", "2025年底", "12月底", "surprises in Mondayland", "USA2today", "Sundays", "会在5月2日开", "", "Bob: CTO",
	} {
		if got := Resolve(text, saturday); got != text {
			t.Errorf("ResolveDates(%q) = %q, want it left", text, got)
		}
	}
}

func TestResolveDatesZone(t *testing.T) {
	t.Parallel()
	instant := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	if got := Resolve("明天", instant); got != "明天（2026-11-22）" {
		t.Errorf("in UTC: %q", got)
	}
	if got := Resolve("明天", instant.In(saturday.Location())); got != "明天（2026-11-23）" {
		t.Errorf("in Shanghai: %q", got)
	}
	if got := Resolve("明天", time.Time{}); got != "明天" {
		t.Errorf("with no time: %q", got)
	}
}

// Clamped to what the calendar has, over the ends of months and years.
func TestResolveDatesEnds(t *testing.T) {
	t.Parallel()
	day := time.Date(2027, 12, 31, 9, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"明天": "明天（2028-01-01）", "2个月后": "2个月后（2028-02-29）", "下个月底": "下个月底（2028-01-31）", "上季度": "上季度（2027-07-01 至 2027-09-30）",
		"下个月31号": "下个月31号（2028-01-31）", "上个月31号": "上个月31号（2027-11）31号", "in a month": "in a month (2028-01-31)", "周五": "周五（2027-12-31）",
	} {
		if text == "上个月31号" {
			want = text // November has none
		}
		if got := Resolve(text, day); got != want {
			t.Errorf("ResolveDates(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestDatesIn(t *testing.T) {
	t.Parallel()
	day := func(s string) string { return s + ".." + s }
	for query, want := range map[string][]string{
		"昨天谁说要改价？":                                {day("2026-11-20")},
		"上周三定了什么":                                 {day("2026-11-11")},
		"周三定了什么":                                  {day("2026-11-18")},
		"周三要交的是什么，截止几点":                           {day("2026-11-25")},
		"5月2日我去了哪里":                               {day("2026-05-02")},
		"12月5日要交什么":                               {day("2026-12-05")},
		"12 月 5 号要交什么":                            {day("2026-12-05")},
		"before May":                              {"2026-05-01..2026-05-31"},
		"12月25日发了什么":                              {day("2025-12-25")},
		"2月29日":                                   {day("2024-02-29")},
		"2026-11-20 聊了什么":                         {day("2026-11-20")},
		"2026年11月20日":                             {day("2026-11-20")},
		"上个月的决定":                                  {"2026-10-01..2026-10-31"},
		"十月份的决定":                                  {"2026-10-01..2026-10-31"},
		"20号说的":                                   {day("2026-11-20")},
		"30号说的":                                   {day("2026-10-30")},
		"last week's decisions":                   {"2026-11-09..2026-11-15"},
		"what did I buy on May 2nd?":              {day("2026-05-02")},
		"What happened on May 2, 2023?":           {day("2023-05-02")},
		"on the 2nd of May 2023":                  {day("2023-05-02")},
		"in May 2023":                             {"2023-05-01..2023-05-31"},
		"Did she move in June?":                   {"2026-06-01..2026-06-30"},
		"may I ask who marches":                   nil,
		"on Friday":                               {day("2026-11-20")},
		"昨天和 last Monday 的":                       {day("2026-11-20"), day("2026-11-16")},
		"13月45日 2026-13-01 no date, 24/7 version": nil,
		"": nil,
	} {
		var got []string
		for _, s := range Find(query, saturday) {
			got = append(got, s.From.Format(time.DateOnly)+".."+s.To.AddDate(0, 0, -1).Format(time.DateOnly))
		}
		if !slices.Equal(got, want) {
			t.Errorf("DatesIn(%q) = %q, want %q", query, got, want)
		}
	}
}

// dateTexts are put together at random: what stands beside a date decides whether it is one.
var dateTexts = []string{
	"明天", "后天", "下周", "周三", "周五", "上周三", "每周", "到", "（2026-11-22）", "(11月22日)", "22日", "本月22日", "今日", "本周", "年底", "两年前", "年", "明年", "（2027）", "（8246）", "(2026-12)", "（2026-11-23 至 2026-11-29）",
	"3", "天后", "天前", "端", " ", "，", "。", "tomorrow", "on Friday", "Friday", " to ", "next week", " ago", "3 days", "Nov 25", "（", "）", "了", "已经", "\xff",
}

// resolveLaws hold for every text: the added dates can be stripped again, and a second call adds none.
func resolveLaws(t interface{ Fatalf(string, ...any) }, text string) {
	once := Resolve(text, saturday)
	if again := Resolve(once, saturday.AddDate(0, 3, 1)); again != once {
		t.Fatalf("resolved again, on another day:\n text %q\n once %q\nagain %q", text, once, again)
	}
	if got, want := Strip(once), Strip(text); got != want {
		t.Fatalf("stripped:\n text %q gives %q\n once %q gives %q", text, want, once, got)
	}
	if len(relativeDates.findPlaces(text)) == 0 && Strip(text) != text {
		t.Fatalf("%q has no resolved date, and became %q", text, Strip(text))
	}
	at := 0
	for i := 0; at < len(text); i++ {
		if i == len(once) {
			t.Fatalf("%q lost a part of %q", once, text)
		}
		if once[i] == text[at] {
			at++
		}
	}
	if n := len(relativeDates.findMentions(text, startOfDay(saturday), false)); len(once)-len(text) > n*len("（2026-11-23 至 2026-11-29）") {
		t.Fatalf("%d dates of %q became %q", n, text, once)
	}
	if utf8.ValidString(text) && !utf8.ValidString(once) {
		t.Fatalf("%q became invalid: %q", text, once)
	}
	for _, s := range Find(text, saturday) {
		if !s.From.Before(s.To) {
			t.Fatalf("DatesIn(%q) has an empty span %v", text, s)
		}
	}
}

func TestResolveDatesLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		resolveLaws(t, strings.Join(rapid.SliceOfN(rapid.SampledFrom(dateTexts), 0, 8).Draw(t, "text"), ""))
	})
}

func FuzzResolveDates(f *testing.F) {
	f.Add("明天和 next Friday 之后，周一到周五每周三已经定了")
	f.Add(strings.Join(dateTexts, ""))
	f.Fuzz(func(t *testing.T, text string) { resolveLaws(t, text) })
}

// Law: no date is in a text that is not worth a look.
func TestLookFindsEveryDate(t *testing.T) {
	t.Parallel()
	for _, r := range allDates.rules {
		tree, err := syntax.Parse("(?i)"+r.pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.SampledFrom([]string{"x ", "今天", "in 3 weeks ", "大后天", "明日"}).Draw(t, "before") + texttest.Matching(t, tree) + " y"
			want := allDates.re().FindAllStringIndex(text, -1)
			if len(want) > 0 && !mayDate(text) {
				t.Fatalf("%q has a date", text)
			}
			if got := allDates.findPlaces(text); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%q: dates at %v, want %v", text, got, want)
			}
			if namesPast(text) && !NamesPast(text) {
				t.Fatalf("%q has a past day", text)
			}
		})
	}
}

func BenchmarkNamesPast(b *testing.B) {
	for b.Loop() {
		NamesPast("另外压测报告放在哪里了，今天下班前能看到吗")
	}
}
