package wording

import "testing"

func TestCostsHaveTheirCurrency(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		amount   float64
		currency string
		want     string
	}{
		{0.01234, "CNY", "0.0123 CNY"}, {2.8, "¥", "¥2.8000"}, {0.00001, "$", "< $0.0001"}, {0.00001, "CNY", "< 0.0001 CNY"}, {1, "元", "1.0000 元"}, {1, "", "1.0000"}, {0, "€", "€0.0000"},
	} {
		if got := Cost(tt.amount, tt.currency); got != tt.want {
			t.Errorf("%g in %q: %q, want %q", tt.amount, tt.currency, got, tt.want)
		}
	}
	if got := Price(2.5, "CNY"); got != "2.5 CNY" {
		t.Errorf("a price: %q", got)
	}
}
