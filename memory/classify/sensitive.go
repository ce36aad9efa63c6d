package classify

import (
	"strings"

	"ebb/memory/text"
)

// Sensitive reports a person's private data: health, pay, identity numbers, bank or travel papers, belief,
// orientation, convictions, home address. Exceptions are general talk ("工资系统由 Bob 负责"), programs, and diets, which
// colleagues must know. For credentials see redact.HasSecret.
func Sensitive(body string) bool {
	f := text.JoinSpelled(productRE.union().ReplaceAllString(text.Canonical(body), "□"))
	return sensitiveRE.MatchString(f) || identityCardRE.MatchString(f) || holdsCard(f)
}

var (
	// productRE finds products and fields of study with the name of a sensitive topic.
	productRE = phrasesOf("product")

	sensitiveRE = phrasesOf("sensitive")

	identityCardRE = phrasesOf("identityCard")

	// cardRE finds candidates. Numbers of DingTalk and of logs are as long: the check digit excludes most, and a card
	// begins with 3 to 6.
	cardRE = ruleFile.Regexp("card")
)

func holdsCard(folded string) bool {
	for _, run := range cardRE().FindAllString(folded, -1) {
		digits := strings.NewReplacer(" ", "", "-", "").Replace(run)
		if n := len(digits); n >= 13 && n <= 19 && '3' <= digits[0] && digits[0] <= '6' && passesLuhn(digits) {
			return true
		}
	}
	return false
}

// passesLuhn checks the last digit, after H. P. Luhn, US patent 2950048 of 1960.
func passesLuhn(digits string) bool {
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}
