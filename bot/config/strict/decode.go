package strict

import (
	"fmt"
	"reflect"

	"github.com/tailscale/hujson"
)

// Decoder is a pointer to a value that decodes itself, such as one that a file may write in two forms.
type Decoder interface {
	Decode(src *Source, path string, v hujson.Value)
}

// Element is a pointer to an element of a list that has defaults.
type Element interface {
	// SetDefaults fills in the element at path before its keys are read. The list has n elements.
	SetDefaults(src *Source, path string, n int)
}

// Decode reads a value of the file into dst, and notes the places of the value and of those below it, which later checks name in their
// errors. It records unknown and repeated keys, wrong types and numbers out of range. Those keep their default. It walks the syntax tree
// itself: encoding/json accepts repeated keys and keys in other letter case, and stops at the first wrong type.
func Decode[T any](src *Source, path string, v hujson.Value, dst *T) {
	decode(src, path, v, reflect.ValueOf(dst).Elem())
}

func decode(s *Source, path string, v hujson.Value, dst reflect.Value) {
	s.at[path] = v.StartOffset
	own, isOwn := reflect.TypeAssert[Decoder](dst.Addr())
	switch {
	case isOwn:
		own.Decode(s, path, v)
	case dst.Type() == DurationType:
		decodeDuration(s, path, v, dst)
	case dst.Kind() == reflect.Struct:
		decodeObject(s, path, v, dst)
	case dst.Kind() == reflect.Map:
		decodeMap(s, path, v, dst)
	case dst.Kind() == reflect.Slice:
		decodeList(s, path, v, dst)
	case dst.Kind() == reflect.Pointer:
		if v.Value.Kind() == 'n' {
			dst.SetZero()
			return
		}
		target := reflect.New(dst.Type().Elem())
		decode(s, path, v, target.Elem())
		dst.Set(target)
	default:
		decodeScalar(s, path, v, dst)
	}
}

// decodeObject goes on after each fault, so that one run reports all of them. A key by an older name has the place and the errors of
// ours, and is shown as it was written.
func decodeObject(s *Source, path string, v hujson.Value, dst reflect.Value) {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		s.Fail(path, "got %s, want an object", KindName(v))
		return
	}
	fields := FieldsOf(dst.Type())
	seen := map[string]member{}
	for _, m := range obj.Members {
		this := member{memberKey(m), m.Name.StartOffset}
		name := s.rules.Canonical(dst.Type(), this.key)
		if twice(s, path, seen[name], this) {
			continue
		}
		seen[name] = this
		if s.rules.IsLater(dst.Type(), this.key) {
			s.at[Join(path, name)] = m.Value.StartOffset
			continue
		}
		child := Join(path, name)
		index, known := fields.Index[name]
		if name != this.key {
			s.written[child] = Join(path, this.key)
		}
		if why := s.rules.Removed(dst.Type(), path, name); !known && why != "" {
			s.at[child] = m.Name.StartOffset
			s.removed = append(s.removed, removedKey{child, why})
			continue
		}
		if !known {
			if near := Nearest(this.key, fields.Names); near != "" {
				s.FailAt(m.Name.StartOffset, child, "no such key, did you mean %q?", near)
			} else {
				s.FailAt(m.Name.StartOffset, child, "no such key, want one of %s", KeyList(fields.Names))
			}
			continue
		}
		field := dst.FieldByIndex(index)
		if m.Value.Value.Kind() == 'n' && fields.optional[name] {
			s.at[child] = m.Value.StartOffset
			field.SetZero()
			continue
		}
		decode(s, child, m.Value, field)
	}
}

func decodeMap(s *Source, path string, v hujson.Value, dst reflect.Value) {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		s.Fail(path, "got %s, want an object", KindName(v))
		return
	}
	out, seen := reflect.MakeMap(dst.Type()), map[string]member{}
	for _, m := range obj.Members {
		name, _ := m.Name.Value.(hujson.Literal)
		id, this := name.String(), member{memberKey(m), m.Name.StartOffset}
		if twice(s, path, seen[id], this) {
			continue
		}
		seen[id] = this
		value := reflect.New(dst.Type().Elem()).Elem()
		decode(s, Join(path, this.key), m.Value, value)
		out.SetMapIndex(reflect.ValueOf(id), value)
	}
	dst.Set(out)
}

type member struct {
	key    string
	offset int
}

func memberKey(m hujson.ObjectMember) string {
	name, _ := m.Name.Value.(hujson.Literal) // the parser accepts only strings as names
	return KeyText(name.String())
}

func twice(s *Source, path string, first, again member) bool {
	line := s.lineOf(first.offset)
	name := Join(path, again.key)
	switch first.key {
	case "":
		return false
	case again.key:
		s.failAs(name, again.offset, name, "given twice, first in line %d", line)
	default:
		s.failAs(name, again.offset, name, "the same as %s, which is given in line %d, want one of the two", first.key, line)
	}
	return true
}

func decodeList(s *Source, path string, v hujson.Value, dst reflect.Value) {
	list, ok := v.Value.(*hujson.Array)
	if !ok {
		s.Fail(path, "got %s, want a list", KindName(v))
		return
	}
	s.Forget(path)
	out := reflect.MakeSlice(dst.Type(), len(list.Elements), len(list.Elements))
	for i, e := range list.Elements {
		at := fmt.Sprintf("%s[%d]", path, i)
		if element, has := reflect.TypeAssert[Element](out.Index(i).Addr()); has {
			element.SetDefaults(s, at, len(list.Elements))
		}
		decode(s, at, e, out.Index(i))
	}
	dst.Set(out)
}
