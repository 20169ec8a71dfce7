import { createHash, createHmac } from "node:crypto";
import { createSealingKey, openSecret, sealSecret } from "../../lib/secrets/secret.ts";
import { ENTRY_ID } from "../entry-id.ts";
import type { TopicPosition } from "./read-after.ts";

/** Identifies a subscription of an agent. A cursor is valid only for the subscription for which it was issued. */
export interface CursorOwner {
  /** Organization and API key, or account, of the caller. */
  readonly principal: string;
  /** Name of the event type. */
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

export interface EventCursors {
  /** Seals a position, so that clients can neither read nor change it. */
  readonly seal: (owner: CursorOwner, position: TopicPosition) => string;
  /** Opens a cursor. Returns `undefined` if it was issued for another caller, name or arguments, or was modified. */
  readonly open: (owner: CursorOwner, cursor: string) => TopicPosition | undefined;
}

/**
 * Creates the cursors of all gateways on a database. Their key does not change with the master key, because a client may come back after
 * a rotation.
 */
export function createEventCursors({ channelIdKey }: { readonly channelIdKey: Buffer }): EventCursors {
  const key = createSealingKey(createHmac("sha256", channelIdKey).update("inlet events cursor").digest());
  return {
    seal: (owner, { after, appended }) =>
      sealSecret(key, `${after} ${appended ?? UNKNOWN}`, contextOf(owner)),
    open(owner, cursor) {
      const [after = "", appended = ""] = openText(() => openSecret(key, cursor, contextOf(owner)));
      if (!ENTRY_ID.test(after)) return undefined;
      return { after, appended: appended === UNKNOWN ? undefined : Number(appended) };
    },
  };
}

const UNKNOWN = "-";

/** Returns the words of a sealed text, or none if it cannot be opened. */
function openText(open: () => string): readonly string[] {
  try {
    return open().split(" ");
  } catch {
    return [];
  }
}

/** Returns a hash of an owner that is equal for equal arguments, whatever the order of their members. */
export const hashCursorOwner = ({ principal, name, args }: CursorOwner): string =>
  createHash("sha256")
    .update(JSON.stringify([principal, name, toCanonical(args)]))
    .digest("base64url");

const contextOf = (owner: CursorOwner): string => `mcp/${hashCursorOwner(owner)}`;

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
