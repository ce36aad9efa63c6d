package index

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ebb/memory/rank"
)

func stored(t *rapid.T, s *segment) *segment {
	t.Helper()
	bits, blocks := s.blocks()
	for i, b := range blocks {
		if err := eachTerm(b, func(h uint32, _ []int64) {
			if bucket(h, bits) != i {
				t.Fatalf("hash %x is in block %d of %d", h, i, len(blocks))
			}
		}); b != nil && err != nil {
			t.Fatal(err)
		}
	}
	blocks = slices.DeleteFunc(blocks, func(b []byte) bool { return b == nil })
	read, err := readSegment(s.first, slices.Clone(s.sizes), blocks)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// A segment that is written, read, joined with others and shortened has each term at the places of its texts, and nothing else.
func TestSegmentHasTheTermsOfItsTexts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"port", "8443", "发布", "日期", "上海", "ledger", "预算", "INV-7731", "吗"}), 0, 12)
		all, left := &segment{lists: map[uint32][]int64{}}, map[int64][]uint32{}
		places := rapid.Permutation(func() (p []int64) {
			for i := range int64(40) {
				p = append(p, 1+i*i*i)
			}
			return p
		}()).Draw(t, "places")
		for _, part := range slices.Collect(slices.Chunk(places, 7)) {
			var texts []text
			for _, p := range part {
				body := ""
				for _, w := range words.Draw(t, "words") {
					body += w + " "
				}
				keys := rank.Keys(0, body)
				left[p] = rank.TermHashes(keys)
				texts = append(texts, text{place: p, terms: packTerms(keys)})
			}
			next := stored(t, newSegment(texts))
			if len(all.sizes) == 0 {
				all = next
			} else {
				all.join(next)
			}
			all = stored(t, all)
			if rapid.Bool().Draw(t, "drop") {
				gone := rapid.SampledFrom(places).Draw(t, "gone")
				all.drop(func(p int64) bool { return p == gone })
				delete(left, gone)
				all = stored(t, all)
			}
		}
		want := map[uint32][]int64{}
		for _, p := range slices.Sorted(maps.Keys(left)) {
			for _, h := range left[p] {
				want[h] = append(want[h], p)
			}
		}
		if !maps.EqualFunc(all.lists, want, slices.Equal[[]int64]) {
			t.Fatalf("read %v, want %v", all.lists, want)
		}
		if all.texts() != len(left) {
			t.Fatalf("%d texts, want %d", all.texts(), len(left))
		}
	})
}

// A block that was cut or changed is an error, and no panic.
func TestBrokenBlocksAreErrors(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		_ = eachTerm(b, func(uint32, []int64) {})
		if err := eachTerm([]byte{1, 3, 200}, func(uint32, []int64) {}); err == nil {
			t.Fatal("a cut block is read")
		}
	})
}

// The class of a text's size is at most 5 % off.
func TestSizeClasses(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 2048; n++ {
		if got := sizeOfClass[sizeClass(n)]; float64(max(got-n, n-got)) > max(0.05*float64(n), 0.5) {
			t.Errorf("%d terms are stored as %d", n, got)
		}
	}
}
