package dingtalktest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"ebb/bot/dingtalk/dingtalktest"
)

// A person with curl, or a scenario file, drives a simulator over HTTP.
func Example_controlPlane() {
	s := dingtalktest.New(dingtalktest.Fast())
	defer s.Close()
	do := func(path, body string) {
		resp, err := http.Post(s.URL+"/_sim/"+path, "application/json", strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		fmt.Printf("%s: %s", path, b)
	}
	do("say", `{"msgId":"m1","conversation":"cidRelease","sender":"u1","text":"deploy status"}`)
	do("fault", `{"route":"webhook","do":"rate-limited","count":3}`)
	do("disconnect", `{}`)
	// Output:
	// say: {"msgId":"m1"}
	// fault: {"fault":1}
	// disconnect: {"error":"no such connection"}
}
