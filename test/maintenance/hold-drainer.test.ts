import { sql } from "kysely";
import { beforeAll, expect, it } from "vitest";
import type { HeldKey } from "../../src/data/intakes/route-targets.ts";
import { createLog } from "../../src/log.ts";
import { type HoldDrainerDeps, startHoldDrainer } from "../../src/maintenance/hold-drainer.ts";
import { createTestChanges } from "../support/changes.ts";
import { listEntries } from "../support/entries.ts";
import { opened } from "../support/opened.ts";
import { startTestSpine } from "../support/spine.ts";
import { until } from "../support/until.ts";

const TOKEN = { "x-token": "the token of the intake" };

const spine = opened(startTestSpine);
let blueprintId: string;
let address: string;
let appId: string;

beforeAll(async () => {
  const { call } = spine.api;
  const channels = [{ uid: "main", kind: "webhook", events: [{ type: "e", idPath: "$.id" }] }];
  blueprintId = (await call.post("/blueprints", { title: "Intake", channels })).id;
  const { url } = await call.put(`/blueprints/${blueprintId}/intake`, {
    channel: "main",
    routeBy: ["$.team"],
    config: {
      verification: { scheme: "token", name: "x-token" },
      secrets: [{ value: TOKEN["x-token"] }],
    },
  });
  address = url.slice(url.lastIndexOf("/") + 1);
  appId = (await call.post("/apps/install", { blueprintId })).id;
});

const setKeys = (keys: readonly string[]) =>
  spine.api.call.put(`/blueprints/${blueprintId}/installs/${appId}/route-keys`, { keys });

async function findHeld(key: string): Promise<HeldKey | undefined> {
  const page = await spine.path.routeTargets.listHeld({ blueprintId: "", key: "" }, 100);
  return page.find((held) => held.key === key);
}

function start(instead: Partial<HoldDrainerDeps> = {}): AsyncDisposable {
  const { quarantine, drainPaused, findCompiledChannel, findInstall, routeTargets, bufferWhilePaused } =
    spine.path;
  return startHoldDrainer({
    db: spine.api.database.db,
    changes: createTestChanges(),
    quarantine,
    drainPaused,
    findCompiledChannel,
    findInstall,
    routeTargets,
    bufferWhilePaused,
    log: createLog({ level: "silent" }),
    holdTiming: { tickMs: 20, leaseMs: 3_600_000, lingerMs: 100 },
    ...instead,
  });
}

it("publishes the held items of a key in order, also while other keys have constant traffic", async () => {
  for (let id = 0; id < 120; id++)
    expect(await spine.send(address, { id, team: "calm" }, TOKEN)).toMatchObject({ quarantined: 1 });
  const busy = ["busy 1", "busy 2", "busy 3", "busy 4"];
  await setKeys([...busy, "calm"]);
  const { quarantine } = spine.path;
  await using _ = start({
    quarantine: {
      ...quarantine,
      listHeld: (intake, key, limit) =>
        busy.includes(key) ? Promise.resolve(["qr_gone"]) : quarantine.listHeld(intake, key, limit),
    },
  });
  await until(async () => (await findHeld("calm")) === undefined);
  const [{ topic }] = await spine.api.call.get(`/apps/${appId}/topics`);
  const ids = (await listEntries(spine.redis, topic)).map(({ fields }) => Number(fields.id));
  expect(ids).toEqual(Array.from({ length: 120 }, (_, id) => id));
  expect(await findHeld("busy 1")).toBeDefined();
});

it("the hold of a key does not end if an item is stored while the hold is ending", async () => {
  const { routeTargets } = spine.path;
  await setKeys(["late"]);
  const held = await findHeld("late");
  if (held === undefined) throw new Error("the key is not held");
  let marking: Promise<void> | undefined;
  await routeTargets.endHold(held, async () => {
    marking = routeTargets.markHeld(held, "late");
    await until(async () => {
      const { rows } = await sql`
        SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`.execute(
        spine.api.database.db,
      );
      return rows.length > 0;
    });
    return false;
  });
  await marking;
  expect(await findHeld("late")).toBeDefined();
  await routeTargets.endHold(held, async () => true);
  expect(await findHeld("late")).toBeDefined();
  await routeTargets.endHold(held, async () => false);
  expect(await findHeld("late")).toBeUndefined();
});
