import { describe, expect, it } from "vitest";
import { createLog } from "../../../src/log.ts";
import { createDriftWatch } from "../../../src/maintenance/problems/drift-watch.ts";
import { opened } from "../../support/opened.ts";
import { sharedSchemas } from "../../support/schemas.ts";
import { startTestSpine } from "../../support/spine.ts";
import { until } from "../../support/until.ts";

const spine = opened(startTestSpine);
const watch = opened(async () =>
  createDriftWatch({
    ...spine.path,
    db: spine.api.database.db,
    schemas: sharedSchemas(),
    log: createLog({ level: "silent" }),
  }),
);

const SCHEMA = {
  type: "object",
  properties: { total: { type: "number" }, note: { type: "string" } },
  required: ["total"],
};
const definition = (schema: object = SCHEMA) => ({
  type: "order",
  idPath: "$.id",
  payloadPath: "$.order",
  schema,
});

let deliveries = 0;

/** Installs an app, delivers the orders and waits until they are recorded. */
async function installDelivered(...orders: object[]) {
  const app = await spine.install({ uid: "orders", kind: "webhook", config: {}, events: [definition()] });
  await deliver(app, ...orders);
  return app;
}

type App = Awaited<ReturnType<typeof spine.install>>;

async function deliver(app: App, ...orders: object[]) {
  const { id } = app.channels[0];
  const path = `/apps/${app.id}/deliveries?limit=100`;
  const before = (await spine.api.call.get(path)).length;
  for (const order of orders) {
    await spine.deliver(id, { id: `o${++deliveries}`, order });
    const count = before + orders.indexOf(order) + 1;
    await until(async () => (await spine.api.call.get(path)).length === count);
  }
}

const find = async (app: App) => {
  const sightings = await watch.find(new AbortController().signal);
  return sightings.filter(({ about }) => about.app?.id === app.id);
};

const CANARY = "value-canary";

describe("recorded deliveries that differ from the schema of their definition", () => {
  it("are a problem once three events differ, with paths and counts but no values", async () => {
    const app = await installDelivered({ total: CANARY }, { total: CANARY, hue: CANARY }, { total: 1 });
    expect(await find(app)).toMatchObject([{ level: "near" }]);
    await deliver(app, { total: null });
    const [problem] = await find(app);
    expect(problem).toMatchObject({
      kind: "schema_drift",
      level: "raised",
      severity: "error",
      subject: `${app.id}/orders`,
      figures: { breaking: 1, warning: 0, info: 1 },
      message:
        "Recent deliveries differ from the channel's schemas: type_changed at /total in 3 events of order.",
    });
    expect(JSON.stringify(problem)).not.toContain(CANARY);
  });

  it("are no longer a problem once the schema accepts them", async () => {
    const orders = Array.from({ length: 3 }, () => ({ total: "1", note: "x" }));
    const app = await installDelivered(...orders);
    expect(await find(app)).toMatchObject([{ level: "raised" }]);
    await spine.api.call.put(`/apps/${app.id}/channels/orders`, {
      events: [
        definition({ type: "object", properties: { total: { type: ["number", "string"] }, note: {} } }),
      ],
    });
    expect(await find(app)).toEqual([]);
  });

  it("are no problem if they only have fields that the schema does not declare", async () => {
    const app = await installDelivered(...Array.from({ length: 4 }, (_, n) => ({ total: n, hue: "red" })));
    expect(await find(app)).toEqual([]);
  });

  it("are counted for each organization's own channel", async () => {
    const app = await installDelivered({ total: "1" }, { total: "2" }, { total: "3" });
    const other = await installDelivered({ total: 1 }, { total: 2 }, { total: 3 });
    expect([await find(app), await find(other)]).toMatchObject([[{ level: "raised" }], []]);
  });
});
