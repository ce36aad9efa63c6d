// Package compactions commits, undoes and logs compactions of views.
package compactions
