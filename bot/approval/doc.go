// Package approval keeps calls of tools that need a person's approval. It has the notice that asks for one, the decision of the asker or
// of an administrator, and the end of the wait. A waiting call is a row and holds nothing open. The turn that made it has ended, with a result that
// names the number of the call; the turn of the decision makes the call.
package approval
