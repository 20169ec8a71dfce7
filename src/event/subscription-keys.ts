/** Keys on Redis by which readers find a subscription; `bus/keys.ts` lists every key. */
export const subscriptionKey = (subscriptionId: string): string => `inlet:sub:${subscriptionId}`;
export const pausedSubscriptionKey = (subscriptionId: string): string => `inlet:sub:${subscriptionId}:paused`;
/** Tells a subscription without topics from one that is unknown. */
export const knownSubscriptionKey = (subscriptionId: string): string => `inlet:sub:${subscriptionId}:known`;

/** In one slot: an ordered reader renews its lease and its topics in one script. */
export const orderedReadersKeys = (subscriptionId: string): readonly [readers: string, owners: string] => [
  `inlet:{sub.${subscriptionId}}:readers`,
  `inlet:{sub.${subscriptionId}}:owners`,
];

/** A stream beside the topic, of the same slot. */
export const deadLettersKey = (topic: string, subscriptionId: string): string =>
  `{${topic}}:dead:${subscriptionId}`;
