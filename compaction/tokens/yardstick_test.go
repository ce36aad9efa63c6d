package tokens_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"ebb/compaction/tokens"
	"ebb/compaction/tokens/tokenstest"
)

// shared counter and library are loaded once.
var shared = sync.OnceValue(func() *tokens.Counter {
	c, err := tokens.NewCounter()
	if err != nil {
		panic(err)
	}
	return c
})

var library = sync.OnceValue(func() *tokenstest.Plain {
	p, err := tokenstest.NewPlain()
	if err != nil {
		panic(err)
	}
	return p
})

func TestCountAgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "a", "Hello, world! The release is on 2026-03-05, order A-10086.",
		"发布定在三月五日，负责人是李娜，订单号 A-10086。\n\n\t有问题找张伟。",
		"支付网关 2.4 的发布日期定在 5 月 20 日。\n- PO-7781\n", "a b\tc\n\n  d",
		strings.Repeat("We ship on Friday. 周五上线，别忘了回滚方案。 ", 200),
		"🙂👩‍👩‍👧 emoji и кириллица, 日本語も, ภาษาไทย, हिन्दी, العربية, עִבְרִית",
		"I'm we're THEY'LL it's IT'S don'T he'D we'vE x'y 'll '", "HTTPServer camelCase ABCdef ABC中DEF中 xYZ Žluťoučký ǅungla",
		"func main() {\r\n\tfmt.Println(\"a/b//c\")\r\n}\r\n\r\n  // end ///\n/", "   leading", "trailing   ", " \n \n  x", "\u3000\u00a0\u2003x",
		"1234567890 12 345,678.90 ½ Ⅻ ٣٤٥٦", "\u0301a \u0301\u0302 .\u0301b \n\u0301", "bad \xff\xfe utf8 \xe4\xbd", "\x00\x01\x7f", "{\"n\":12,\"t\":\"2026-03-05 10:20\",\"who\":\"张伟(u1)\",\"text\":\"…\"}",
		strings.Repeat("=", 60) + strings.Repeat("-", 60) + strings.Repeat(" ", 60) + "x",
	} {
		agree(t, text)
	}
}

// Characters of each class of the library's expression, in all groups of four.
func TestCountAgreesWithTheLibraryOnEveryKindOfCharacter(t *testing.T) {
	t.Parallel()
	some := []rune("az'sLEZǅʰ中ァ\u0301\u0e3119½ \t\u00a0\u3000\n\r/.,=“，🙂\u200d\x00")
	for _, a := range some {
		for _, b := range some {
			for _, c := range some {
				agree(t, string([]rune{a, b, c}))
				agree(t, string([]rune{'x', a, b, c, ' '}))
			}
		}
	}
}

// Law: for any text whose pieces are not too long, the count is the library's.
func TestCountIsTheLibrarys(t *testing.T) {
	t.Parallel()
	runes := rapid.OneOf(
		rapid.RuneFrom([]rune("aAzZ09 \n\r\t/'’sStTdDmMlLrReEvV.,-_=。，汉字好é\u0301ʰǅ½🙂\u00a0\u2028\u3000\x00\u200d")),
		rapid.RuneFrom(nil, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.C),
	)
	rapid.Check(t, func(t *rapid.T) {
		agree(t, rapid.StringOfN(runes, 0, 30, -1).Draw(t, "text"))
	})
}

func agree(t interface{ Errorf(string, ...any) }, text string) {
	if got, want := shared().Count(text), library().Count(text); got != want {
		t.Errorf("Count(%s) = %d, the library says %d", fmt.Sprintf("%.60q", text), got, want)
	}
}

func TestCountOfRepeatedWordsAllocatesNothing(t *testing.T) {
	text := strings.Repeat("We ship on Friday; 周五上线，别忘了方案。\n", 20)
	c := shared()
	c.Count(text)
	if n := testing.AllocsPerRun(10, func() { c.Count(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
