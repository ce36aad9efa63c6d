package console

import (
	"net/http"
	"slices"

	"ebb/memory/pages"
	"ebb/sessions"
)

// approvalFilter reads the filter of the list of approvals.
func approvalFilter(text string) (pages.ApprovalFilter, error) {
	p, err := parseFilter(text, "state", "group", "session")
	if err != nil {
		return pages.ApprovalFilter{}, err
	}
	f := pages.ApprovalFilter{Words: slices.Concat(p.words, p.values["group"])}
	if f.State, err = p.one(
		"state", string(sessions.ApprovalWaiting), string(sessions.ApprovalApproved), string(sessions.ApprovalRejected), string(sessions.ApprovalExpired),
	); err != nil {
		return f, err
	}
	session, err := p.one("session")
	f.Session = sessions.Key(session)
	return f, err
}

func listApprovals(w http.ResponseWriter, r *request) error {
	return showList(w, r, "approvals", approvalFilter, func(f pages.ApprovalFilter, p pages.Page) ([]pages.ApprovalRow, string, error) {
		return r.lists.Approvals(r.Context(), f, p)
	})
}
