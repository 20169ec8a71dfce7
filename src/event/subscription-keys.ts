/** Redis key of a subscription's set of topics, read by consumers. `bus/keys.ts` lists every key. */
export const subscriptionKey = (subscriptionId: string): string => `inlet:sub:${subscriptionId}`;
export const pausedSubscriptionKey = (subscriptionId: string): string => `inlet:sub:${subscriptionId}:paused`;
/** Redis key that exists for every subscription. It distinguishes an unknown subscription from one without topics. */
export const knownSubscriptionKey = (subscriptionId: string): string => `inlet:sub:${subscriptionId}:known`;

/** Both keys share a Redis Cluster slot, because one script renews an ordered reader's lease and its topics. */
export const orderedReadersKeys = (subscriptionId: string): readonly [readers: string, owners: string] => [
  `inlet:{sub.${subscriptionId}}:readers`,
  `inlet:{sub.${subscriptionId}}:owners`,
];

/** Key of the dead-letter stream of a topic. It shares the topic's Redis Cluster slot, so that one script can use both keys. */
export const deadLettersKey = (topic: string, subscriptionId: string): string =>
  `{${topic}}:dead:${subscriptionId}`;
