import { startLoop } from "../../lib/loop.ts";
import type { Log } from "../../log.ts";
import type { ChangeSubscriptions } from "../changes.ts";
import type { Queryable } from "../database.ts";
import { type LimitDefaults, type Limits, limitsInForce } from "./limits.ts";

/** The current limits of every organization, held in memory because each delivery checks them. */
export interface ActiveLimits extends AsyncDisposable {
  readonly of: (organizationId: string) => Limits;
}

const LOOK_AGAIN_MS = 60_000;

/**
 * Loads the limits of all organizations and keeps them up to date. If a later read fails, the last known limits stay in use.
 *
 * @throws UnavailableError if the first read fails
 */
export async function startActiveLimits(deps: {
  readonly db: Queryable;
  readonly changes: ChangeSubscriptions;
  readonly defaults: LimitDefaults;
  readonly log: Log;
}): Promise<ActiveLimits> {
  const { db, changes, defaults, log } = deps;
  const others = limitsInForce(defaults, undefined, false);
  let own: ReadonlyMap<string, Limits> = new Map();

  async function read(): Promise<void> {
    const { organizationId: operators } = await db
      .selectFrom("cluster")
      .select("organizationId")
      .executeTakeFirstOrThrow();
    const rows = await db.selectFrom("organizationLimits").selectAll().execute();
    const found = new Map(
      rows.map((row) => [row.organizationId, limitsInForce(defaults, row, row.organizationId === operators)]),
    );
    if (operators !== null && !found.has(operators))
      found.set(operators, limitsInForce(defaults, undefined, true));
    own = found;
  }

  await read();
  const loop = startLoop({
    step: read,
    everyMs: LOOK_AGAIN_MS,
    waitsFirst: true,
    onFailing: (err) =>
      log.warn(
        { event: "limits.not_read", err },
        "organization limits cannot be read; the last known limits stay active",
      ),
  });
  changes.subscribe({
    onChange: ({ kind }) => void (kind === "limits" && loop.wake()),
    onReset: loop.wake,
  });
  return {
    of: (organizationId) => own.get(organizationId) ?? others,
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  };
}
