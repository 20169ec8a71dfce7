/** Returns the Redis key of a subscription's topics. Consumers read the topics from this set. */
export const subscriptionKey = (subscriptionId: string): string => `inlet:sub:${subscriptionId}`;
export const pausedSubscriptionKey = (subscriptionId: string): string => `inlet:sub:${subscriptionId}:paused`;
/** Returns a Redis key that exists for every subscription. It tells an unknown subscription from one without topics. */
export const knownSubscriptionKey = (subscriptionId: string): string => `inlet:sub:${subscriptionId}:known`;

/** Returns the Redis key of the last error of a reader's handler, a hash with the fields of `ReaderError`. */
export const readerErrorKey = (subscriptionId: string): string => `inlet:sub:${subscriptionId}:error`;

/** The last error of a reader's handler. */
export interface ReaderError {
  /** Time of the error in RFC 3339, by the reader's clock. */
  readonly at: string;
  readonly message: string;
}

/** Returns the Redis keys of readers and their topics. Both keys share a Cluster slot, because one script updates both. */
export const orderedReadersKeys = (subscriptionId: string): readonly [readers: string, owners: string] => [
  `inlet:{sub.${subscriptionId}}:readers`,
  `inlet:{sub.${subscriptionId}}:owners`,
];

/** Returns the Redis key of a topic's dead letters. It shares the topic's Cluster slot, so that one script can use both keys. */
export const deadLettersKey = (topic: string, subscriptionId: string): string =>
  `{${topic}}:dead:${subscriptionId}`;
