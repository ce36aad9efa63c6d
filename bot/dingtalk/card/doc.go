// Package card shows answers on DingTalk's cards: one card for each turn that asks the model.
//
// A turn opens its card a quarter of a second after its begin, or while it waits for a slot, and streams its text. The reply of a
// faster turn creates the card. The reply in the outbox ends the card, with the same calls for each attempt: a card shows its last
// text once. A long reply goes on as Markdown messages. A reply whose card DingTalk refuses is a Markdown message as a whole.
//
// # No card stays unfinished
//
// The row of a card exists before the card. It belongs to the waiting message, then to the unsent reply. A card with
// neither is abandoned, and each replica closes abandoned cards within seconds. One that DingTalk refuses is given up
// after two hours. After a kill the next owner of the session answers the message again on the same card, whose id
// derives from the message.
//
// # Calls
//
//	streamed card     2 calls, one for each update, and one for its buttons at the end; one more if its turn waited
//	unstreamed card   2 calls; also an answer that is there within a quarter of a second
//	Markdown message  none
//
// A card is delivered with both calls reserved, so that the month always permits its end. The row keeps that
// reservation through the commit and a kill, until a call that ends the card failed. Updates come at card_interval,
// slower as the answer grows, and share 15 calls a second. See package calls for the month's levels.
package card
