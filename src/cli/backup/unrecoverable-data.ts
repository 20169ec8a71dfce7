/**
 * Lists the data that a backup cannot restore, for the person who restores it.
 *
 * @param takenAt time of the backup (RFC 3339)
 */
export const listUnrecoverableData = (takenAt: string): readonly string[] => [
  `Events, quarantined items and settings created after ${takenAt} are missing. Their senders received a 200, so they resend only on request.`,
  "Event ids remembered after the backup are unknown. If such a delivery is sent again, it is published a second time.",
  "Sources continue from the cursors in the backup. Items fetched since then are published again if their servers still have them.",
  "Readers and handlers receive events again that they acknowledged after the backup.",
  "Changes made after the backup are undone: revoked API keys, removed permissions, rotated addresses, events deleted for privacy. Repeat them.",
  "OAuth tokens refreshed after the backup are unknown. If a provider accepts each refresh token only once, sign in again.",
];
