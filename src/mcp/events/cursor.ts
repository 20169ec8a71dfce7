import { createHash } from "node:crypto";
import { ENTRY_ID } from "../../bus/entry-id.ts";
import type { TopicPosition } from "../../bus/topics/read-after.ts";
import type { Keyring } from "../../data/keyring/keyring.ts";
import { UnavailableError } from "../../lib/errors.ts";
import { EventsError } from "./revision.ts";

/** Identifies a subscription. A cursor is valid only for the subscription for which it was issued. */
export interface Subscription {
  /** Organization and API key, or account, of the caller. */
  readonly principal: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** Seals a position, so that clients can neither read nor change it. */
export const sealCursor = (
  keyring: Keyring,
  subscription: Subscription,
  { after, appended }: TopicPosition,
): string => keyring.seal(`${after} ${appended}`, rowOf(subscription));

/** Opens a cursor. @throws EventsError -32602 if it was issued for another caller, name or arguments, or was modified */
export function openCursor(keyring: Keyring, subscription: Subscription, cursor: string): TopicPosition {
  try {
    const [after = "", appended = ""] = keyring.open(cursor, rowOf(subscription)).split(" ");
    if (ENTRY_ID.test(after)) return { after, appended: Number(appended) };
  } catch (error) {
    if (error instanceof UnavailableError) throw error;
  }
  throw new EventsError(
    "invalidParams",
    "The cursor was not issued to this caller for this event type and these arguments. Send null to start with new events.",
    { reason: "invalid_cursor" },
  );
}

const rowOf = ({ principal, name, args }: Subscription): string =>
  `mcp/${createHash("sha256")
    .update(JSON.stringify([principal, name, toCanonical(args)]))
    .digest("base64url")}`;

/** Sorts the members of all objects, so that equal arguments have one text (RFC 8785, section 3.2.3). */
function toCanonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toCanonical);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : Number(a > b)))
      .map(([name, member]) => [name, toCanonical(member)]),
  );
}
