// Package similarity decides whether a text repeats another one, nearly or among other words. Forgetting a fact
// depends on it.
package similarity
