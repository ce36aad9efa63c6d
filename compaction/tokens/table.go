package tokens

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"

	"github.com/pkoukk/tiktoken-go"
	"github.com/pkoukk/tiktoken-go-loader/assets"
)

const (
	tableFile = "o200k_base.tiktoken"
	tableSize = 200_000
)

// table is the ranks of the tokens, by their bytes. It is the library's loader too.
type table map[string]int

// LoadTiktokenBpe implements [tiktoken.BpeLoader].
func (t table) LoadTiktokenBpe(string) (map[string]int, error) { return t, nil }

// newLibrary takes the table from the program instead of the network. The library derives a second map and a sorted copy from the table
// that it is given. Only decoding reads those, and they take two thirds of the time and of the memory. So the library gets an
// empty map, and keeps it; the map is filled afterwards.
func newLibrary() (*tiktoken.Tiktoken, error) {
	ranks := make(table, tableSize)
	tiktoken.SetBpeLoader(ranks)
	library, err := tiktoken.GetEncoding(tiktoken.MODEL_O200K_BASE)
	if err != nil {
		return nil, err
	}
	return library, ranks.fill()
}

// fill reads the file of the module tiktoken-go-loader: a token in base64 and its rank a line. The tokens are parts of one string.
func (t table) fill() error {
	file, err := assets.Assets.ReadFile(tableFile)
	if err != nil {
		return err
	}
	decoded := make([]byte, 0, base64.StdEncoding.DecodedLen(len(file)))
	type entry struct{ end, rank int }
	entries := make([]entry, 0, tableSize)
	for line := range bytes.Lines(file) {
		token, number, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		if decoded, err = base64.StdEncoding.AppendDecode(decoded, token); err != nil {
			return fmt.Errorf("decode %s: %w", tableFile, err)
		}
		rank, err := strconv.Atoi(string(number))
		if err != nil {
			return fmt.Errorf("read the rank of a token of %s: %w", tableFile, err)
		}
		entries = append(entries, entry{len(decoded), rank})
	}
	text, start := string(decoded), 0
	for _, e := range entries {
		t[text[start:e.end]] = e.rank
		start = e.end
	}
	return nil
}
