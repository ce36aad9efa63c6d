package rank

import (
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// talk is a conversation of texts, a minute apart, each "speaker: text"; the bot is the speaker bot.
func talk(lines ...string) []Doc {
	var docs []Doc
	for i, l := range lines {
		who, text, _ := strings.Cut(l, ": ")
		docs = append(docs, Doc{
			Seq: int64(i + 1), At: noon.Add(time.Duration(i) * time.Minute), Who: []string{who}, Assistant: who == "bot", Keys: Keys(7, text),
		})
	}
	return docs
}

// find gives the places, from 1, of what a query finds in a conversation of whom everybody's nick is their id.
func find(query string, docs []Doc) []int {
	q := ParseQuery(query, noon.AddDate(0, 0, 1))
	for _, d := range docs {
		q.AddPeople(Person{ID: d.Who[0], Nick: d.Who[0]})
	}
	p := q.Pool(len(docs))
	p.Add(docs...)
	var places []int
	for _, f := range p.Rank(10) {
		places = append(places, f.Place+1)
	}
	return places
}

func TestBest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, query string
		docs        []Doc
		want        int // 0: nothing is found
	}{
		{"other forms of a word", "Who went painting?", talk("a: we talk of cars", "b: I paint on Sundays", "a: and cars again"), 2},
		{"an irregular form", "what did she buy", talk("a: the cat sleeps", "b: she bought shoes", "a: dogs bark"), 2},
		{"two Chinese characters", "预算是多少", talk("a: 今天天气好", "b: 项目预算两百万", "a: 我们去吃饭"), 2},
		{"one Chinese character", "我养的猫叫什么", talk("a: 狗在院子里", "b: 家里有只猫", "a: 鱼不说话"), 2},
		{"both scripts", "Redis 的端口", talk("a: Redis 装好了", "b: redis端口是6380", "a: MySQL 端口 3306"), 2},
		{"full width", "ＯＲＤ-2041", talk("a: ord-2042 waits", "b: ord-2041 ships", "a: nothing else"), 2},
		{"an address", "what runs on 10.0.3.7", talk("a: 10.0.3.8 is mine", "b: 10.0.3.7 serves the wiki", "a: 7 of 10"), 2},
		{"the person who is named", "what does Zoe think of the offer", talk("Max: the offer is fair", "Zoe: the offer is a joke", "Max: well"), 2},
		{"an answer without the words", "which colour does Zoe want for the logo", talk("Max: which colour for the logo?", "Zoe: turquoise", "Max: fine", "Eve: lunch", "Eve: noodles"), 2},
		{"what the bot recommended", "你推荐过哪家餐厅", talk("a: 我不喜欢那个餐厅", "bot: 餐厅可以试试四季", "a: 好的"), 2},
		{"what a person said of it", "我喜欢哪家餐厅", talk("bot: 餐厅可以试试四季", "a: 餐厅我喜欢老王家", "bot: 好的"), 2},
		{"a word that is said for it", "who is the doctor", talk("a: cars are fast", "b: the physician is Dr Li", "a: trains too"), 2},
		{"a Chinese one", "发布是谁负责", talk("a: 今天下雨", "b: 上线归小王管", "a: 明天天晴"), 2},
		{"stop words only", "what is it about", talk("a: what is it about", "b: so what"), 0},
		{"Chinese stop words only", "你是什么的", talk("a: 你是什么的", "b: 这是什么"), 0},
		{"words that are not there", "量子 thermodynamics", talk("a: 项目预算", "b: the offer"), 0},
		{"a word that every chat has beside one that is not there", "Mongolia time", talk("a: good time", "b: time flies"), 0},
		{"nothing", "", talk("a: b"), 0},
	} {
		got := find(tt.query, tt.docs)
		if first := append(got, 0)[0]; first != tt.want {
			t.Errorf("%s: %q finds %v, want %d first", tt.name, tt.query, got, tt.want)
		}
	}
}

func TestDates(t *testing.T) {
	t.Parallel()
	q := func(text string) Query { return ParseQuery(text, noon) }
	for text, want := range map[string]string{
		"5月2日说了什么": "2026-05-02", "在5月2号": "2026-05-02", "12月3日的会": "2025-12-03", "2024年12月3日": "2024-12-03",
		"On May 2nd, what": "2026-05-02", "the 2nd of May": "2026-05-02", "June 11, 2023": "2023-06-11", "2023-06-11": "2023-06-11",
		"in March 2023": "2023-03-01", "昨天": "2026-11-19", "yesterday": "2026-11-19", "前天聊了啥": "2026-11-18",
		"上周": "2026-11-09", "last week": "2026-11-09", "上个月": "2026-10-01", "today": "2026-11-20",
		"may I ask": "", "13月41日": "", "marches on": "", "version 1.2.3": "",
	} {
		from, to, ok := q(text).Span()
		got := ""
		if ok {
			got = from.Format(time.DateOnly)
		}
		if got != want || ok && !from.Before(to) {
			t.Errorf("%q names %q until %s, want %q", text, got, to, want)
		}
	}
	docs := talk("a: the offer came", "b: the offer came")
	docs[1].At = noon.AddDate(0, 0, -9)
	if got := find("the offer of 11月11日", docs); got[0] != 2 {
		t.Errorf("a date finds %v", got)
	}
	docs[1].Outdated = true
	if got := find("the offer of 11月11日", docs); got[0] != 1 {
		t.Errorf("what was corrected later comes first: %v", got)
	}
	if got := find("我们昨天聊了什么", talk("a: 价格定了", "b: 三百元")); len(got) != 2 {
		t.Errorf("a day alone finds %v, want all that was said", got)
	}
}

func TestBesideAsksForNeighbours(t *testing.T) {
	t.Parallel()
	docs := talk("a: one", "b: zebra?", "a: three", "b: four", "a: five", "b: six")
	q := ParseQuery("zebra", noon)
	p := q.Pool(6)
	p.Add(docs[1])
	if got := p.Adjacent(3); !slices.Equal(got, []int64{1, 3, 4}) {
		t.Fatalf("the neighbours are %v", got)
	}
	p.Add(docs[2])
	finds := p.Rank(5)
	if len(finds) != 2 || finds[1].Place != 1 || !slices.Equal(finds[1].Why, []string{"beside a match"}) || !slices.Equal(finds[0].Why, []string{"zebra"}) {
		t.Errorf("found %+v", finds)
	}
}

func TestCommonTermsWeighLess(t *testing.T) {
	t.Parallel()
	q := ParseQuery("alpha beta", noon)
	p := q.Pool(10_000)
	p.Common(Scope(7).keyOf(termHash(stemWord("alpha"))), 9000)
	p.Add(talk("a: alpha here", "b: nothing", "a: nothing", "b: nothing", "a: beta here")...)
	if got := p.Rank(1); len(got) != 1 || got[0].Place != 4 {
		t.Errorf("found %+v, want the rarer term", got)
	}
}

func TestSays(t *testing.T) {
	t.Parallel()
	doc := func(text string) Doc { return Doc{Keys: Keys(3, text)} }
	fact := doc("上海项目的预算是两百万")
	for text, want := range map[string]bool{
		"上海项目预算两百万，定了": true, "上海项目要招人": false, "上海项目的预算是两百万。" + strings.Repeat("另外还有很多别的安排要讲。", 20): false,
	} {
		if got := Repeats(doc(text), fact); got != want {
			t.Errorf("%q says the fact: %t, want %t", text, got, want)
		}
	}
}

func TestPiece(t *testing.T) {
	t.Parallel()
	q := ParseQuery("needle 预算", noon)
	filler := strings.Repeat("filler text ", 300)
	got := q.Piece(filler+"needle "+filler+"the needle of 预算 "+filler, 400)
	if !strings.HasPrefix(got, "…") || !strings.Contains(got, "the needle of 预算") || len([]rune(got)) != 401 {
		t.Errorf("the piece is %q", got)
	}
	if short := q.Piece("short", 400); short != "short" {
		t.Errorf("a short text became %q", short)
	}
}

// For any text, its keys are of its scope and bounded, its own words find it, and a piece of it is no longer than asked
// for.
func FuzzKeys(f *testing.F) {
	for _, s := range []string{"预算 budget", "don't", "10.0.3.7", "ｆｕｌｌ", "é́", "_-_", strings.Repeat("a", 300), "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "")
		keys := Keys(0xFFFFFFFF, text)
		if len(keys) > maxTerms*maxRepeats+1 {
			t.Fatalf("%d keys", len(keys))
		}
		for _, k := range keys {
			if uint64(k)>>32 != 0xFFFFFFFF {
				t.Fatalf("key %x is of another scope", k)
			}
		}
		q := ParseQuery(text, noon)
		if got := q.EventKeys(0xFFFFFFFF); len(got) > 0 {
			p := q.Pool(1)
			p.Add(Doc{Seq: 1, At: noon, Keys: keys})
			if !slices.ContainsFunc(got, func(k int64) bool { return slices.Contains(keys, k) }) || len(p.Rank(1)) != 1 {
				t.Errorf("%q is not found by its own words", text)
			}
		}
		if got := []rune(q.Piece(text, 40)); len(got) > 41 {
			t.Errorf("a piece of 40 has %d characters", len(got))
		}
	})
}

func TestStem(t *testing.T) {
	t.Parallel()
	for want, words := range map[string]string{
		"paint": "paint paints painted painting", "hop": "hop hopping hopped", "relat": "relate relational related",
		"go": "goes went gone going", "child": "child children", "agre": "agreed agree", "happi": "happy happiness", "run": "run running ran", //nolint:misspell // a stem
		"file": "filing", "c3po": "c3po", "über": "über",
	} {
		for w := range strings.FieldsSeq(words) {
			if got := stemWord(w); got != want {
				t.Errorf("stem(%q) = %q, want %q", w, got, want)
			}
		}
	}
}

// A long text keeps the number of terms that a search can read, and first those that match by themselves.
func TestKeysOfALongText(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 400 {
		text.WriteRune(rune(0x4E00 + 7*i)) // a character and a pair each
	}
	text.WriteString(" think K7731 K7731 K7731 K7731 K7731 K7731")
	keys := Keys(7, text.String())
	if len(keys) > 4*512+1 {
		t.Errorf("%d keys are kept", len(keys))
	}
	times := 0
	for _, k := range keys {
		if slices.Contains(ParseQuery("K7731", noon).EventKeys(7), k) {
			times++
		}
	}
	if times == 0 || times > 2*4 { // a name with digits in it is found by its parts, too
		t.Errorf("the name at the end is kept %d times", times)
	}
	if !slices.Contains(keys, Scope(7).KeyFor(Scope(9).KeyFor(Keys(8, "K7731")[0]))) {
		t.Error("a key is not found by that of another scope")
	}
}
