/**
 * Lists the data that a backup cannot restore, as text for the operator.
 *
 * @param takenAt time of the backup (RFC 3339)
 */
export const listUnrecoverableData = (takenAt: string): readonly string[] => [
  `Events, quarantined items and settings created after ${takenAt} are missing. Their senders received status 200, so they only resend on request.`,
  "Event ids that Inlet remembered after the backup are lost. If a sender repeats such a delivery, Inlet publishes it a second time.",
  "Sources continue from the cursors in the backup. Inlet publishes items fetched since then again if their servers still have them.",
  "Readers and handlers receive events again that they acknowledged after the backup.",
  "Changes made after the backup are undone: revoked API keys, removed permissions, rotated addresses, events deleted for privacy. Make these changes again.",
  "OAuth tokens refreshed after the backup are lost. If a provider accepts each refresh token only once, sign in again.",
];
