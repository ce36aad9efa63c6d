package tokens

import (
	"maps"
	"testing"

	loader "github.com/pkoukk/tiktoken-go-loader"
)

func TestTableIsTheLoaders(t *testing.T) {
	t.Parallel()
	want, err := loader.NewOfflineLoader().LoadTiktokenBpe(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	got := make(table, tableSize)
	if err := got.fill(); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d tokens, want the %d of the loader with their ranks", len(got), len(want))
	}
}
