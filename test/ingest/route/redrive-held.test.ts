import { expect, it } from "vitest";
import { createRedriveHeld, type RedriveHeldDeps } from "../../../src/ingest/route/redrive-held.ts";
import { UnavailableError } from "../../../src/lib/errors.ts";
import { routeItems } from "../../../src/normalize/route-items.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";

const spine = opened(startTestSpine);
const TOKEN = { "x-token": "the token of the intake" };
const now = { signal: new AbortController().signal };

it("a redrive that is cut off after some items were published publishes none of them twice", async () => {
  const { call } = spine.api;
  const config = { itemsPath: "$.events" };
  const channels = [{ uid: "main", kind: "webhook", config, events: [{ type: "e" }] }];
  const { id: blueprintId } = await call.post("/blueprints", { title: "Intake", channels });
  const verification = { scheme: "token", name: "x-token" };
  const secrets = [{ value: TOKEN["x-token"] }];
  const settings = { channel: "main", routeBy: ["$.group"], config: { ...config, verification, secrets } };
  const { url } = await call.put(`/blueprints/${blueprintId}/intake`, settings);
  const app = await call.post("/apps/install", { blueprintId });
  await call.put(`/blueprints/${blueprintId}/installs/${app.id}/route-keys`, { keys: ["A", "B"] });
  const events = [{ team: "A" }, { team: "B" }];
  await spine.send(url.slice(url.lastIndexOf("/") + 1), { events }, TOKEN);
  await call.put(`/blueprints/${blueprintId}/intake`, { routeBy: ["$.team"] });

  const { quarantine, findInstall, routeTargets, findCompiledChannel, drainPaused } = spine.path;
  const row = await spine.api.database.db
    .selectFrom("channels")
    .select("number")
    .where("appId", "=", blueprintId)
    .executeTakeFirstOrThrow();
  const intake = await findCompiledChannel(row.number);
  if (intake?.routes === undefined) throw new Error("there is no intake");
  const { identity, routes } = intake;
  const deps = (put: typeof quarantine.put): RedriveHeldDeps => ({
    routeItems: ({ rules }, { paths }, delivery) => routeItems(rules, paths, delivery),
    findInstall,
    targets: routeTargets,
    quarantine: { put },
    newDeliveryId: () => "dl_new",
    clock: Date.now,
  });
  const create = (put: typeof quarantine.put) => createRedriveHeld(deps(put));
  const find = async (id: string) => {
    const found = await quarantine.find(identity.organizationId, id);
    if (found === undefined) throw new Error("the item is gone");
    return found;
  };
  const [listed] = await call.get(`/blueprints/${blueprintId}/quarantine`);
  const item = await find(listed.id);

  /** Publishes the items that are held for a key, as the drainer does. */
  async function publishHeld(key: string) {
    const [id = "", ...others] = await quarantine.listHeld(identity, key, 10);
    expect(others).toEqual([]);
    const install = await findInstall(intake as NonNullable<typeof intake>, key);
    if (install === undefined) throw new Error("there is no install");
    const outcome = await drainPaused.one(install.channel, { id, delivery: (await find(id)).delivery }, now);
    await quarantine.delete(identity.organizationId, id);
    return outcome;
  }

  const cutOff = create((channel, write, options) =>
    options.release === undefined
      ? quarantine.put(channel, write, options)
      : Promise.reject(new UnavailableError("the gateway was killed")),
  );
  await expect(cutOff(intake, routes, item, now)).rejects.toThrow("killed");
  expect(await publishHeld("A")).toMatchObject({ published: 1, duplicates: 0 });

  const redrive = create(quarantine.put);
  // The item arrived for an install, so it must not reach the install with its new key.
  const waiting = { ...item, record: { ...item.record, reason: "over_limit" as const, routeKey: "C" } };
  expect(await redrive(intake, routes, waiting, now)).toMatchObject({ routed: 0, held: 2 });
  // The app of the key's owner has lost its channel.
  const owned = { ...item, record: { ...item.record, routeKey: "A" } };
  const withoutChannel = createRedriveHeld({ ...deps(quarantine.put), findInstall: async () => undefined });
  expect(await withoutChannel(intake, routes, owned, now)).toMatchObject({ routed: 2, quarantine: [] });
  expect(await quarantine.find(identity.organizationId, item.record.id)).toBeDefined();

  expect(await redrive(intake, routes, item, now)).toMatchObject({ routed: 2, held: 0, quarantine: [] });
  expect(await quarantine.find(identity.organizationId, item.record.id)).toBeUndefined();
  expect(await publishHeld("A")).toMatchObject({ published: 0, duplicates: 1 });
  expect(await publishHeld("B")).toMatchObject({ published: 1, duplicates: 0 });
});
