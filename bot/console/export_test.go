package console

// APIPaths are the paths of the API's lists.
func APIPaths() (paths []string) {
	for path := range apiLists(nil, usage{}) {
		paths = append(paths, path)
	}
	return paths
}

// SpreadsheetText is the text of a cell.
var SpreadsheetText = spreadsheetText

// Routes are the patterns of all pages behind the login.
func Routes() (patterns []string) {
	for _, one := range routes(Config{}, nil) {
		patterns = append(patterns, one.pattern)
	}
	return patterns
}
