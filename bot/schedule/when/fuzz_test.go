package when

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// reporter is a test, or one case of a property.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// checkParse checks the laws of Parse for a text. An error names a place in it. A spec is due ahead, is read back from its
// stored form, and leaves a part of the text. Text beyond the longest phrase changes nothing but the rest.
func checkParse(t reporter, text string, now time.Time) {
	t.Helper()
	spec, rest, err := Parse(text, now)
	var failure *Error
	switch {
	case errors.As(err, &failure):
		if failure.At < 0 || failure.At > len(text) || spec != (Spec{}) || rest != "" {
			t.Errorf("%.200q: %+v, %s, rest %.200q", text, failure, spec, rest)
		}
		return
	case err != nil:
		t.Errorf("%.200q: %v", text, err)
		return
	}
	next, ok := spec.Next(now)
	if !ok || !next.After(now) || next.After(now.AddDate(maxYears, 0, 1)) {
		t.Errorf("%.200q at %s is due at %s, %v", text, now, next, ok)
	}
	if again, err := Read(spec.String()); err != nil || again != spec {
		t.Errorf("%.200q: %s is read as %s, %v", text, spec, again, err)
	}
	if !strings.Contains(text, rest) {
		t.Errorf("%.200q has the rest %.200q", text, rest)
	}
	for _, lang := range []string{"zh", "en"} {
		if words := spec.Words(lang); words == "" {
			t.Errorf("%.200q: %s has no words", text, spec)
		}
	}
	if runes := []rune(text); len(runes) > maxPhrase {
		short, _, err := Parse(string(runes[:maxPhrase+1]), now)
		if err != nil || short != spec {
			t.Errorf("%.200q: %s, and its beginning: %s, %v", text, spec, short, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, r := range readPhrases(f) {
		f.Add(r.phrase, r.now.Unix())
	}
	zone := zone(f, "America/New_York")
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		checkParse(t, text, time.Unix(unix&0xffffffff, unix&0xffff).In(zone))
	})
}

// Phrases of random parts obey the laws too, and are far more often a time than random text.
func TestPhrasesOfParts(t *testing.T) {
	t.Parallel()
	rows := readPhrases(t)
	parts := strings.Fields(`3 12 25 99 0 九 二十五 半 两 一 三五 点 分 秒 : ： / - 年 月 号 日 周 星期 五 天 每 每隔 隔 个 小时 后 前 明天 今晚 下周五 下午 凌晨 晚 的 和 到 最后
		every other on at in the and of 1st last friday fridays monday day week month year hours half past to am pm noon tomorrow tonight december * */5 1-5 L # ,`)
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		b.WriteString(rapid.SampledFrom(append([]string{""}, rows[rapid.IntRange(0, len(rows)-1).Draw(t, "row")].phrase)).Draw(t, "phrase"))
		for range rapid.IntRange(0, 8).Draw(t, "parts") {
			b.WriteString(rapid.SampledFrom([]string{"", " "}).Draw(t, "blank") + rapid.SampledFrom(parts).Draw(t, "part"))
		}
		unix := rapid.Int64Range(1_600_000_000, 1_900_000_000).Draw(t, "now")
		checkParse(t, b.String(), time.Unix(unix, 0).In(zone(t, rapid.SampledFrom([]string{"Asia/Shanghai", "America/New_York"}).Draw(t, "zone"))))
	})
}

// A spec in words is read as the same spec, at any time and in both languages.
func TestWordsAreReadAgain(t *testing.T) {
	t.Parallel()
	rows := readPhrases(t)
	rapid.Check(t, func(t *rapid.T) {
		phrase := rapid.SampledFrom(rows).Draw(t, "row").phrase
		now := time.Unix(rapid.Int64Range(1_600_000_000, 1_900_000_000).Draw(t, "now"), 0).
			In(zone(t, rapid.SampledFrom([]string{"Asia/Shanghai", "UTC", "America/New_York"}).Draw(t, "zone")))
		spec, _, err := Parse(phrase, now)
		if err != nil {
			return // as for a date that is past then
		}
		if first, last := instants(wallClock(spec.first()), now.Location()); spec.kind == once && !first.Equal(last) {
			return // the words of an hour that is shown twice mean the first
		}
		for _, lang := range []string{"zh", "en"} {
			words := spec.Words(lang)
			if again, rest, err := Parse(words, now); err != nil || again != spec || rest != "" {
				t.Fatalf("%s at %s is %s, in words %s, which is read as %s, rest %q, %v", phrase, now, spec, words, again, rest, err)
			}
		}
	})
}

// Long and hostile text is refused or read from its beginning.
func TestHostileText(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 14, 0, 0, 0, zone(t, "Asia/Shanghai"))
	for _, piece := range []string{
		"9", "一", "千", "每", "每周一", "半", "一个半", "1小时", "and ", "a couple of ", "in ", " ", "的", "\u200b", "明天", "*/1,", "1 ", ":", "\xff", "（", "周",
		"every ", "1-", "提醒我", "第一个", "𝟗", "½", "٣", "nine ", "\x00",
	} {
		long := strings.Repeat(piece, 15_000/len(piece)+1)
		for _, text := range []string{long, long + "后", "每" + long + "小时", "in " + long + "years", "明天" + long, long + "点", "每周五9点" + long, "2026-" + long} {
			checkParse(t, text, now)
		}
	}
}

// The work does not grow with the text.
func TestParseReadsTheBeginningOnly(t *testing.T) {
	now := time.Date(2026, 11, 23, 14, 0, 0, 0, zone(t, "Asia/Shanghai"))
	allocations := func(phrase string, length int) float64 {
		text := phrase + strings.Repeat("会", length)
		return testing.AllocsPerRun(20, func() { Parse(text, now) })
	}
	for _, phrase := range []string{"明天下午3点开会", "每周一", ""} {
		if short, long := allocations(phrase, 200), allocations(phrase, 15_000); long > short*1.1+5 {
			t.Errorf("%q with 200 characters takes %.0f allocations, with 15,000 %.0f", phrase, short, long)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	now := time.Date(2026, 11, 23, 14, 0, 0, 0, zone(b, "Asia/Shanghai"))
	for _, text := range []string{"每周五9点提醒我们交周报", "tomorrow at 3:30 pm call mom", strings.Repeat("没有时间的话", 2500)} {
		b.Run(string([]rune(text)[:6]), func(b *testing.B) {
			for b.Loop() {
				Parse(text, now)
			}
		})
	}
}
