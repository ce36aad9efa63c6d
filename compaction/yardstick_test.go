package compaction

import "testing"

func TestCountPlainIsCountWhereNoRunIsLong(t *testing.T) {
	t.Parallel()
	c, err := NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "hello, world", "支付网关 2.4 的发布日期定在 5 月 20 日。\n- PO-7781\n", "a b\tc\n\n  d"} {
		if got, want := c.CountPlain(text), c.Count(text); got != want {
			t.Errorf("%q: %d tokens, and bounded %d", text, got, want)
		}
	}
}
