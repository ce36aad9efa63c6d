package main

// referencePath is the file that users copy from.
const referencePath = "../../config.jsonc"

// env makes a getenv from pairs of name and value.
func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

// credentials is an environment in which the reference file is complete.
func credentials() func(string) string {
	return env("DINGTALK_CLIENT_ID", "ding1", "DINGTALK_CLIENT_SECRET", "hunter2", "LLM_API_KEY", "sk-1")
}
