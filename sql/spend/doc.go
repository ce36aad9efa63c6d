// Package spend sums what calls to models cost, by session, day and kind.
package spend
