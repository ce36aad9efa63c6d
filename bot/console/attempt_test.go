package console

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"ebb/bot/console/render"
	"ebb/bot/upkeep"
)

// The page of an attempt names each field of an audit in each language, and no others.
func TestAuditFieldsHaveNames(t *testing.T) {
	t.Parallel()
	r, err := render.New(nil, func() string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	fields := []string{"offloads_deleted", "deleted_files"} // package sessions writes these
	for _, f := range reflect.VisibleFields(reflect.TypeFor[upkeep.AuditRecord]()) {
		if f.Anonymous {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(fields, name)
	}
	for _, name := range fields {
		for _, lang := range []string{"zh", "en"} {
			if key := "check." + name; r.Words(lang).T(key) == key {
				t.Errorf("%s has no name in %s", name, lang)
			}
		}
	}
	slices.Sort(fields)
	if known := slices.Sorted(slices.Values(auditFields)); !slices.Equal(known, fields) {
		t.Errorf("the page knows %q, an audit has %q", known, fields)
	}
}

// Shares are percentages, and other fields keep their own form.
func TestAuditRows(t *testing.T) {
	t.Parallel()
	r, err := render.New(nil, func() string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	got := auditRows(`{"recall": 0.875, "missing": ["PO-7", "3%"], "healed": true, "calls": 2, "newer": {"a": 1}, "memories": [7, 12], "preserved_count": 0}`, r.Words("zh"))
	want := []auditRow{{"保留的标识", "88 %"}, {"模型漏掉、已补回的标识", "PO-7, 3%"}, {"不经模型修正", "是"}, {"模型调用次数", "2"}, {"保留原文的消息数", "0"}, {"这次整理存下的记忆编号", "7, 12"}, {"newer", `{"a":1}`}}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
