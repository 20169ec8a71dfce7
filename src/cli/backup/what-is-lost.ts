/** What no backup can give back, for the person who restores one. @param takenAt RFC 3339 */
export const whatIsLost = (takenAt: string): readonly string[] => [
  `Events, quarantine and settings that came after ${takenAt} are not there. Senders had their 200, and send them again only if asked.`,
  "Ids that were remembered after it are forgotten: a delivery of then that comes again is an event, which readers may have seen before.",
  "Sources go on from their cursors of then: what they have fetched since comes again, as far as their servers still have it.",
  "Readers and handlers get events again that they acknowledged after it.",
  "What was revoked, rotated or deleted after it is back: API keys, permissions, addresses of channels, events deleted for privacy. Do it again.",
  "OAuth tokens refreshed after it are unknown: where a provider takes each refresh token once, sign in again.",
];
