package dingtalktest

// TB is what NewServer needs of a *testing.T or *testing.B, without linking package testing into programs.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	Cleanup(f func())
}

// NewServer starts a simulator for a test and closes it when the test ends. When the test failed, the transcript and the
// violations are logged.
func NewServer(t TB, opts Options) *Server {
	t.Helper()
	s, err := Start(opts)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if f, ok := t.(interface{ Failed() bool }); ok && f.Failed() {
			for _, e := range s.Transcript() {
				t.Logf("%s", e)
			}
			for _, v := range s.Violations() {
				t.Logf("%s", v)
			}
		}
		s.Close()
	})
	return s
}
