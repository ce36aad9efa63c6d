package console

// APIPaths are the paths of the API's lists.
func APIPaths() (paths []string) {
	for path := range new(Console).apiLists() {
		paths = append(paths, path)
	}
	return paths
}

// SpreadsheetText is the text of a cell.
var SpreadsheetText = spreadsheetText
