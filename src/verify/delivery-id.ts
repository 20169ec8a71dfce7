/** Room is left for the place of an item behind it: an event's id has 512 characters at most. */
const MAX_LENGTH = 256;

/** True for what can name a delivery. Lone surrogates would all become one and the same character in UTF-8. */
export const isDeliveryId = (text: string): boolean =>
  text !== "" && text.length <= MAX_LENGTH && text.isWellFormed();
