/** Redis key of a subscription's set of topics, read by consumers. `bus/keys.ts` lists every key. */
export const subscriptionKey = (subscriptionId: string): string => `inlet:sub:${subscriptionId}`;
export const pausedSubscriptionKey = (subscriptionId: string): string => `inlet:sub:${subscriptionId}:paused`;
/** Redis key that exists for every subscription. It distinguishes an unknown subscription from one without topics. */
export const knownSubscriptionKey = (subscriptionId: string): string => `inlet:sub:${subscriptionId}:known`;

/** Both keys are in one slot, because an ordered reader renews its lease and its topics in one script. */
export const orderedReadersKeys = (subscriptionId: string): readonly [readers: string, owners: string] => [
  `inlet:{sub.${subscriptionId}}:readers`,
  `inlet:{sub.${subscriptionId}}:owners`,
];

/** Stream of dead letters for a topic. It shares the topic's slot, so one script can use both. */
export const deadLettersKey = (topic: string, subscriptionId: string): string =>
  `{${topic}}:dead:${subscriptionId}`;
