package openaitest

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"math"
	"net/http"
	"strings"
)

// EmbedRequest is a received request for vectors.
type EmbedRequest struct {
	N          int // from 1
	Model      string
	Texts      []string
	Dimensions int // 0: unspecified
}

const vectorLength = 512

// Embeddings returns the requests for vectors, in order of arrival.
func (s *Server) Embeddings() []EmbedRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]EmbedRequest(nil), s.embeds...)
}

func (s *Server) embeddings(w http.ResponseWriter, hr *http.Request) {
	var q struct {
		Model      string
		Input      []string
		Dimensions int
	}
	body, err := io.ReadAll(hr.Body)
	if err != nil {
		return
	}
	if err := json.Unmarshal(body, &q); err != nil || len(q.Input) == 0 {
		fail(w, http.StatusBadRequest, "the body is not a request for embeddings of texts")
		return
	}
	if s.opts.APIKey != "" && hr.Header.Get("Authorization") != "Bearer "+s.opts.APIKey {
		fail(w, http.StatusUnauthorized, "Incorrect API key provided: "+strings.TrimPrefix(hr.Header.Get("Authorization"), "Bearer "))
		return
	}
	s.mu.Lock()
	r := EmbedRequest{N: len(s.embeds) + 1, Model: q.Model, Texts: q.Input, Dimensions: q.Dimensions}
	s.embeds = append(s.embeds, r)
	fault, bad := embedRefusal(s.behaves, r)
	s.mu.Unlock()
	if !bad && s.opts.EmbedFault != nil {
		fault, bad = s.opts.EmbedFault(r)
	}
	if bad {
		ctx, cancel := s.open(hr)
		defer cancel()
		fault.write(ctx, w, Request{})
		return
	}
	data := make([]object, len(q.Input))
	for i, text := range q.Input { // in reverse order, so that clients must use the index
		at := len(q.Input) - 1 - i
		data[at] = object{"object": "embedding", "index": i, "embedding": Vector(text, q.Dimensions, s.opts.Synonyms)}
	}
	b, _ := json.Marshal(object{
		"object": "list", "model": q.Model, "data": data, "usage": object{"prompt_tokens": len(body) / 3, "total_tokens": len(body) / 3},
	})
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b)
}

// Vector is the server's embedding of a text. Words, pairs of Chinese characters and, with more weight, groups of
// synonyms are hashed to positions and signs: texts that share them are near each other.
func Vector(text string, length int, synonyms [][]string) []float32 {
	if length <= 0 {
		length = vectorLength
	}
	v := make([]float32, length)
	add := func(feature string, weight float32) {
		h := fnv.New64a()
		_, _ = h.Write([]byte(feature))
		sum := h.Sum64()
		if sum>>63 == 1 {
			weight = -weight
		}
		v[sum%uint64(length)] += weight
	}
	for g := range grams(text) {
		if !strings.ContainsAny(g, "0123456789") { // like real models, it gives numbers little weight
			add(g, 1)
		}
	}
	lower := strings.ToLower(text)
	for _, group := range synonyms {
		for _, word := range group {
			if strings.Contains(lower, strings.ToLower(word)) {
				add("meaning "+group[0], 3)
				break
			}
		}
	}
	add("text", 0.1) // so that no vector is all zeros
	norm := 0.0
	for _, f := range v {
		norm += float64(f) * float64(f)
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(norm))
	}
	return v
}
