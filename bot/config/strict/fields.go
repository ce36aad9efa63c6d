package strict

import "reflect"

// Fields are the keys of a struct in the order of its fields, those of embedded structs included.
type Fields struct {
	Names    []string
	Index    map[string][]int // as in reflect's FieldByIndex
	optional map[string]bool  // keys that accept null
}

// FieldsOf returns the fields with a name in their tag json. Those of an embedded struct with the tag strict:"null" accept null, which
// stands for 0.
func FieldsOf(t reflect.Type) Fields {
	set := Fields{Index: map[string][]int{}, optional: map[string]bool{}}
	for _, f := range reflect.VisibleFields(t) {
		if name := f.Tag.Get("json"); name != "" && name != "-" {
			set.Names = append(set.Names, name)
			set.Index[name] = f.Index
			set.optional[name] = len(f.Index) > 1 && t.FieldByIndex(f.Index[:len(f.Index)-1]).Tag.Get("strict") == "null"
		}
	}
	return set
}
