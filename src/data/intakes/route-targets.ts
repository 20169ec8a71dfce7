import { sql } from "kysely";
import { INTAKE_KIND } from "../../event/intake.ts";
import { parseJson } from "../../event/parse-json.ts";
import { batched } from "../../lib/batched.ts";
import { recordChange } from "../changes.ts";
import { openAddress } from "../channels/address-columns.ts";
import type { Queryable } from "../database.ts";
import type { Keyring } from "../keyring/keyring.ts";
import { hasOwner } from "./route-keys.ts";

/** The channel of the install that owns a route key. */
export interface RouteTarget {
  /** Address of the channel, by which it is looked up. */
  readonly address: string;
  /** Whether the intake may hold items of the key that must be published first. */
  readonly isHeld: boolean;
}

export interface RouteQuery {
  readonly blueprintId: string;
  readonly channelUid: string;
  readonly key: string;
}

/** A route key of an install for which the intake may hold items. */
export interface HeldKey {
  readonly blueprintId: string;
  readonly key: string;
  /** Internal channel id and organization of the intake. */
  readonly number: number;
  readonly organizationId: string;
}

export type RouteTargets = ReturnType<typeof createRouteTargets>;

const LOOK_UPS = { maxKeys: 200, maxCalls: 2 } as const;

/** Finds the installs that own route keys, in all organizations. Only event processing may use it. */
export function createRouteTargets({ db, keyring }: { readonly db: Queryable; readonly keyring: Keyring }) {
  const find = batched(async (wanted: readonly string[]) => {
    const queries = wanted.map((text) => parseJson(text) as readonly [string, string, string]);
    const column = (index: 0 | 1 | 2) => queries.map((query) => query[index]);
    const { rows } = await sql<{ place: number; number: number; sealedAddress: string; held: boolean }>`
      SELECT w.place::int AS place, c.number, c.sealed_address, r.held
      FROM unnest(${column(0)}::text[], ${column(1)}::text[], ${column(2)}::text[]) WITH ORDINALITY
        AS w(blueprint_id, channel_uid, key, place)
      JOIN route_keys AS r ON r.blueprint_id = w.blueprint_id AND r.key = w.key
      JOIN channels AS c ON c.app_id = r.app_id AND c.uid = w.channel_uid`.execute(db);
    return new Map(
      rows.map(({ place, number, sealedAddress, held }) => {
        const target: RouteTarget = {
          address: openAddress(keyring, { number, sealedAddress }),
          isHeld: held,
        };
        return [wanted[place - 1] ?? "", target] as const;
      }),
    );
  }, LOOK_UPS);
  return {
    /** Returns `undefined` if no install owns the key, or its app lacks the channel. @throws UnavailableError */
    find: ({ blueprintId, channelUid, key }: RouteQuery): Promise<RouteTarget | undefined> =>
      find(JSON.stringify([blueprintId, channelUid, key])),
    /** Returns whether an install owns the key, also one whose app lacks the channel. */
    hasOwner: (blueprintId: string, key: string): Promise<boolean> => hasOwner(db, { blueprintId, key }),
    /**
     * Makes later items of the key wait for those that the intake holds. Has no effect if no install owns the key. Must be called after the
     * items were stored, so that `endHold` finds them.
     */
    async markHeld(intake: { readonly number: number; readonly blueprintId: string }, key: string) {
      const { number, blueprintId } = intake;
      // The lock waits for an `endHold` in progress, which may have searched before the items were stored.
      const row = await selectKey(db, blueprintId, key).forShare().executeTakeFirst();
      if (row === undefined || row.held) return;
      await db.transaction().execute(async (trx) => {
        await setHeld(trx, blueprintId, key, true);
        await recordChange(trx, { kind: "channel", key: String(number) });
      });
    },
    /** Ends the hold of a key, unless the intake holds items for it. `hasHeld` searches for them while `markHeld` waits. */
    async endHold({ blueprintId, key, number }: HeldKey, hasHeld: () => Promise<boolean>): Promise<void> {
      await db.transaction().execute(async (trx) => {
        const row = await selectKey(trx, blueprintId, key).forUpdate().executeTakeFirst();
        if (row === undefined || (await hasHeld())) return;
        await setHeld(trx, blueprintId, key, false);
        await recordChange(trx, { kind: "channel", key: String(number) });
      });
    },
    /** Lists the keys of installs for which an intake may hold items: a page after the given key. */
    listHeld: (after: Pick<HeldKey, "blueprintId" | "key">, limit: number): Promise<HeldKey[]> =>
      db
        .selectFrom("routeKeys as r")
        .innerJoin("channels as c", (join) =>
          join.onRef("c.appId", "=", "r.blueprintId").on("c.kind", "=", INTAKE_KIND),
        )
        .select(["r.blueprintId", "r.key", "c.number", "c.organizationId"])
        .where("r.held", "=", true)
        .where(sql<boolean>`(r.blueprint_id, r.key) > (${after.blueprintId}, ${after.key})`)
        .orderBy("r.blueprintId")
        .orderBy("r.key")
        .limit(limit)
        .execute(),
  };
}

const selectKey = (db: Queryable, blueprintId: string, key: string) =>
  db.selectFrom("routeKeys").select("held").where("blueprintId", "=", blueprintId).where("key", "=", key);

const setHeld = (db: Queryable, blueprintId: string, key: string, held: boolean) =>
  db
    .updateTable("routeKeys")
    .set({ held })
    .where("blueprintId", "=", blueprintId)
    .where("key", "=", key)
    .execute();
