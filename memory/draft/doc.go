// Package draft turns the arguments of a memory_save call into drafts of facts, for turns and flushes. The model only
// labels a fact: no text can make a fact readable to more people.
package draft
