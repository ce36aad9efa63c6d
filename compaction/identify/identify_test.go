package identify

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ebb/compaction/compactiontest"
)

// keysOf are the keys of a text's identifiers, in order.
func keysOf(text string) []string {
	var keys []string
	for _, id := range Find(text) {
		keys = append(keys, id.Key)
	}
	return keys
}

func TestIdentify(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"见https://a.cn/x，谢谢":                                  {"url:https://a.cn/x"},
		"(https://a.cn/b_(c)) [x](https://a.cn/y)":            {"url:https://a.cn/b_(c)", "url:https://a.cn/y"},
		"https://a.cn/2026-03-05/OPS-1?id=123456.":            {"url:https://a.cn/2026-03-05/ops-1?id=123456"},
		"找li.na@a.cn或13800138000":                             {"email:li.na@a.cn", "num:13800138000"},
		"+86 138-0013-8000, 010-12345678":                     {"num:13800138000", "num:01012345678"},
		"订单20260001和A-10086、PO-7781":                          {"num:20260001", "id:a-10086", "id:po-7781"},
		"976fccb1 3d2f1e0c-aaaa-bbbb-cccc-1234567890ab":       {"id:976fccb1", "id:3d2f1e0c-aaaa-bbbb-cccc-1234567890ab"},
		"连10.0.0.5:8080，db.a.cn:5432":                         {"host:10.0.0.5:8080", "host:db.a.cn:5432"},
		"看cmd/bot/main.go和/etc/hosts，改config.jsonc":           {"path:cmd/bot/main.go", "path:/etc/hosts", "path:config.jsonc"},
		"升到v2.4，下一版1.26.0-rc.1。":                              {"version:2.4", "version:1.26.0-rc.1"},
		"预算3.5万元，定金￥1,000，尾款 $20.50":                          {"money:3.5万:cny", "money:1000:cny", "money:20.5:usd"},
		"涨了12.50%，占百分之30":                                     {"percent:12.5", "percent:30"},
		"2026-03-05T10:30:00Z 发布":                             {"date:2026-03-05", "time:10:30"},
		"8 May, 2023; May 7th; March 5, 2026":                 {"date:2023-05-08", "date:05-07", "date:2026-03-05"},
		"下午3点半，晚上8:15，10:30 PM":                               {"time:15:30", "time:20:15", "time:22:30"},
		"run `go test ./...` in `main`, fixes `OPS-12`":       {"code:go test ./...", "id:ops-12"},
		"对账单 PO-20260315-7781，运单SF-13800138000到了":             {"id:po-20260315-7781", "id:sf-13800138000"},
		"这 3 点意见，一共 12 条，第 4 版，and/or, Marina 5, 3.14":        {"time:03:00"},
		"密码 [已隐去]，https://a.cn/?access_token=[已隐去]&n=1234567": nil,
	} {
		got := keysOf(text)
		if text == "密码 [已隐去]，https://a.cn/?access_token=[已隐去]&n=1234567" {
			if slices.ContainsFunc(got, func(k string) bool { return strings.HasPrefix(k, "url:") || strings.Contains(k, "隐") }) {
				t.Errorf("%s: %q names what was redacted", text, got)
			}
			continue
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// P65: a URL ends where Chinese begins, and the marks of a sentence are none of it, in both widths.
func TestIdentifiersNextToChinese(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"见https://a.cn/x，谢谢", "见https://a.cn/x。谢谢", "见（https://a.cn/x）谢谢", "见「https://a.cn/x」", "见https://a.cn/x,谢谢", "见https://a.cn/x；y=1",
		"见https://a.cn/x谢谢", "ｈｔｔｐｓ：／／ａ．ｃｎ／ｘ 谢谢", "https：//a.cn/x\r\n谢谢", "https://a.\u200bcn/x、谢谢", "<https://a.cn/x>", "**https://a.cn/x**", "https://a.cn/x...",
	} {
		if got := keysOf(text); !slices.Equal(got, []string{"url:https://a.cn/x"}) {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// P65: an identifier does not depend on the width it is typed in, on Chinese or punctuation next to it, on line ends,
// or on invisible characters.
func TestExtractionIsInvariant(t *testing.T) {
	t.Parallel()
	wide := func(s string) string {
		return strings.Map(func(r rune) rune {
			if '!' <= r && r <= '~' {
				return r - '!' + '！'
			}
			return r
		}, s)
	}
	rapid.Check(t, func(t *rapid.T) {
		item := compactiontest.Identifiers().Draw(t, "item")
		want := keysOf(item)
		if len(want) != 1 {
			t.Fatalf("%q is %q by itself", item, want)
		}
		rs := []rune(item)
		at := rapid.IntRange(1, len(rs)-1).Draw(t, "at")
		for _, text := range []string{
			wide(item), "见" + item + "，谢谢", "（" + item + "）", "是" + item + "。", item + "\r\n", item + "\n", "\ufeff" + item,
			string(rs[:at]) + "\u200b" + string(rs[at:]), "「" + item + "」！",
		} {
			if got := keysOf(text); !slices.Equal(got, want) {
				t.Errorf("%q: %q, want %q", text, got, want)
			}
		}
	})
}

// P66: spellings of a day and of an amount are the same, and amounts that differ are not.
func TestSpellingsOfDaysAndAmounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		y, m, d := rapid.IntRange(1990, 2090).Draw(t, "y"), rapid.IntRange(1, 12).Draw(t, "m"), rapid.IntRange(1, 31).Draw(t, "d")
		want := keysOf(fmt.Sprintf("%d-%02d-%02d", y, m, d))
		for _, form := range []string{"%d年%d月%d日", "%d/%d/%d", "%d.%d.%d", "%d-%d-%d", "%d 年 %d 月 %d 日", "%d年%d月%d号"} {
			if got := keysOf(fmt.Sprintf(form, y, m, d)); len(got) != 1 || !slices.Equal(got, want) {
				t.Fatalf("%s: %q, want %q", form, got, want)
			}
		}
		n := rapid.IntRange(1000, 999999).Draw(t, "n")
		grouped := fmt.Sprintf("%d,%03d", n/1000, n%1000)
		if a, b := keysOf(grouped+"元"), keysOf(fmt.Sprintf("%d 元", n)); len(a) != 1 || !slices.Equal(a, b) {
			t.Fatalf("%s元 is %q, and without separator %q", grouped, a, b)
		}
		if a, b := keysOf(grouped+"元"), keysOf(grouped+"0元"); slices.Equal(a, b) {
			t.Fatalf("%s is %s0: %q", grouped, grouped, a)
		}
	})
	for _, c := range [][2]string{{"1,000元", "10,000元"}, {"3.5万元", "35,000元"}, {"3.5万", "35000"}, {"2026-03-05", "2026-05-03"}, {"10:30", "10:31"}, {"¥100", "$100"}} {
		if slices.Equal(keysOf(c[0]), keysOf(c[1])) {
			t.Errorf("%s is the same as %s", c[0], c[1])
		}
	}
}

// P68: 张伟 is not 张伟明, and a name in an address is no mention.
func TestNamesAreMatchedAgainstTheRoster(t *testing.T) {
	t.Parallel()
	names := NameList([]string{"张伟", "张伟明", "Bob", "Li Na", "7", "王"})
	for text, want := range map[string][]string{
		"张伟明负责":                                {"name:张伟明"},
		"张伟负责，张伟明复核":                           {"name:张伟", "name:张伟明"},
		"问张伟":                                  {"name:张伟"},
		"https://a.cn/张伟 和 https://a.cn/Bob/x": nil,
		"bob and Bobby, li na; bob@a.cn":       {"name:bob", "name:li na"},
		"7 个人姓王":                               nil,
		"/home/bob/x.txt `bob.run()`":          nil,
	} {
		var got []string
		for _, id := range FindWithNames(Fold(text), names) {
			if id.Type == TypeName {
				got = append(got, id.Key)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// searchedWhole lists what stands in a text where all of it is searched.
func searchedWhole(s string) []Identifier {
	return identifyIn(Fold(s), nil, func(text []byte) [][2]int { return [][2]int{{0, len(text)}} })
}

// P65: the result does not depend on which pieces of a text are searched.
func TestFormsKeepToTheirPieces(t *testing.T) {
	t.Parallel()
	words := strings.Fields(`1 03 2026 12:30 3rd 21st 5.2.1 v1.2 1,000 10.0.0.1 13800138000 +86 010-12345678 400-800-8000 US$ RMB usd dollars yuan % 百分之 万 千万 亿 元
		人民币 块钱 年 月 日 号 点 半 分 整 上午 下午 晚上 p.m. AM pm Mar March may, of st Dec. summary web-01:8080 host.example.com:443 localhost:80 www.a.cn https://a.cn/x?y=1
		a@b.cn main.go ./run.sh /etc/hosts C:\\tmp src/a.ts OPS-4711 deadbeef01 [已隐去] the 张伟 完成 of - / : . T Z k`)
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(1, 14).Draw(t, "words") {
			b.WriteString(rapid.SampledFrom(words).Draw(t, "word"))
			b.WriteString(rapid.SampledFrom([]string{" ", " ", " ", "", "  ", "，", "\n", ",", "-", "\t"}).Draw(t, "between"))
		}
		if got, want := Find(b.String()), searchedWhole(b.String()); !slices.Equal(got, want) {
			t.Fatalf("%q has %+v, and where all of it is searched %+v", b.String(), got, want)
		}
	})
}

// P65: in any text, identifiers stand where they say, in order and apart. Text around them in another width changes
// nothing.
func FuzzIdentify(f *testing.F) {
	for _, s := range []string{
		"见https://a.cn/x，谢谢", "2026年3月5日 下午3点半", "１，０００元 ¥5", "`a b.c` A-1 [已隐去]", "\xff\xfe12345678", "e\u0301\u200d1.2.3", "10：30：00",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		end := 0
		for _, id := range Find(s) {
			if id.From < end || id.To < id.From || id.To > len(s) || id.Key == "" || id.Text == "" {
				t.Fatalf("%q: %+v after byte %d", s, id, end)
			}
			end = id.To
		}
		if got, want := Find(s), searchedWhole(s); !slices.Equal(got, want) {
			t.Errorf("%q has %+v, and where all of it is searched %+v", s, got, want)
		}
		if a, b := keysOf(s), keysOf(strings.ReplaceAll(s, "\n", "\r\n")); !slices.Equal(a, b) {
			t.Errorf("%q has %q, and with other line ends %q", s, a, b)
		}
	})
}

// Each rule of patterns.tsv finds its first example, and not its second.
func TestPatternExamples(t *testing.T) {
	t.Parallel()
	finds := func(p formPattern, text string) bool {
		s := textScan{f: Fold(text), left: []byte(Fold(text).Text), rules: []formPattern{p}}
		s.claimForms(0, len(s.left))
		return len(s.found) > 0
	}
	for _, p := range patterns {
		if !finds(p, p.match) {
			t.Errorf("%s %s: not in %q", p.typ, p.re, p.match)
		}
		if finds(p, p.miss) {
			t.Errorf("%s %s: in %q", p.typ, p.re, p.miss)
		}
	}
}
