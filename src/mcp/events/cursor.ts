import { createHash, createHmac } from "node:crypto";
import { ENTRY_ID } from "../../bus/entry-id.ts";
import type { TopicPosition } from "../../bus/topics/read-after.ts";
import type { Keyring } from "../../data/keyring/keyring.ts";
import { createSealingKey, openSecret, sealSecret } from "../../lib/secrets/secret.ts";
import { EventsError } from "./revision.ts";

/** Identifies a subscription. A cursor is valid only for the subscription for which it was issued. */
export interface Subscription {
  /** Organization and API key, or account, of the caller. */
  readonly principal: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

export interface Cursors {
  /** Seals a position, so that clients can neither read nor change it. */
  readonly seal: (subscription: Subscription, position: TopicPosition) => string;
  /** Opens a cursor. @throws EventsError -32602 if it was issued for another caller, name or arguments, or was modified */
  readonly open: (subscription: Subscription, cursor: string) => TopicPosition;
}

/**
 * Creates the cursors of all gateways on a database. Their key does not change with the master key, because a client may come back after
 * a rotation.
 */
export function createCursors({ channelIdKey }: Pick<Keyring, "channelIdKey">): Cursors {
  const key = createSealingKey(createHmac("sha256", channelIdKey).update("inlet events cursor").digest());
  return {
    seal: (subscription, { after, appended }) =>
      sealSecret(key, `${after} ${appended}`, contextOf(subscription)),
    open(subscription, cursor) {
      const [after = "", appended = ""] = openText(() => openSecret(key, cursor, contextOf(subscription)));
      if (ENTRY_ID.test(after)) return { after, appended: Number(appended) };
      throw new EventsError(
        "invalidParams",
        "The cursor was not issued to this caller for this event type and these arguments. Send null to start with new events.",
        { reason: "invalid_cursor" },
      );
    },
  };
}

/** Returns the words of a sealed text, or none if it cannot be opened. */
function openText(open: () => string): readonly string[] {
  try {
    return open().split(" ");
  } catch {
    return [];
  }
}

const contextOf = ({ principal, name, args }: Subscription): string =>
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
