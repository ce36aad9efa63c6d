package console

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"

	"ebb/bot/console/render"
	"ebb/memory/pages"
	"ebb/sessions"
)

// workView is the part of a session's page that refreshes itself. It holds no text of people.
type workView struct {
	pages.Work
	Key     sessions.Key
	Page    string // state of the conversation that the page shows
	Seen    string // hash of the part that the page shows
	Changed bool   // since the page was loaded
}

// readWork takes the state that the person sees from the parameter page; without one it is the present.
func readWork(r *request, key sessions.Key) (workView, error) {
	w, err := r.lists.Work(r.Context(), key)
	if err != nil {
		return workView{}, err
	}
	if w.Silent <= render.SilentAfter { // a figure that always changes
		w.Silent = 0
	}
	v := workView{Work: w, Key: key, Page: r.FormValue("page")}
	state := fmt.Sprintf("%d.%d.%d", w.LastSeq, w.Compactions, w.Gen)
	if v.Page == "" {
		v.Page = state
	}
	v.Changed = v.Page != state
	sum := sha256.Sum256(fmt.Append(nil, w, v.Changed))
	v.Seen = hex.EncodeToString(sum[:6])
	return v, nil
}

// showWork answers 204 if the page shows the work as it is: then the script changes nothing, and a screen reader repeats
// nothing.
func showWork(w http.ResponseWriter, r *request) error {
	key, err := r.key("key")
	if err != nil {
		return err
	}
	v, err := readWork(r, key)
	if err != nil {
		return err
	}
	if v.Seen == r.FormValue("seen") {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return r.show(w, "work", v)
}
