import { expect, it } from "vitest";
import { runSealing } from "../../src/cli/seal-addresses.ts";
import { loadConfig } from "../../src/config/load.ts";
import { createLog } from "../../src/log.ts";
import { createTestApi } from "../support/api.ts";
import { opened } from "../support/opened.ts";

const api = opened(createTestApi);

it("seal-addresses encrypts the channel addresses that an earlier version stored in plain text, and prints the result", async () => {
  const { db } = api.database;
  const { host, user, database } = api.database.connection;
  await db.updateTable("cluster").set({ plainAddresses: true }).execute();
  const blueprint = await api.call.post("/blueprints", {
    title: "x",
    channels: [{ uid: "in", kind: "webhook" }],
  });
  await api.call.post("/apps/install", { blueprintId: blueprint.id });
  const plain = () => db.selectFrom("channels").select("id").where("id", "is not", null).execute();
  expect(await plain()).toHaveLength(1);
  const env = {
    DATABASE_URL: `postgresql://${user}@localhost/${database}?host=${encodeURIComponent(host)}`,
    INLET_MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
  };
  const loaded = loadConfig(env);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.error));
  let printed = "";
  const print = async (text: string) => {
    printed += text;
  };
  const { signal } = new AbortController();
  await runSealing(loaded.value, { log: createLog({ level: "silent" }), signal, print });
  expect(printed).toContain("Plain-text channel addresses are removed");
  expect(await plain()).toEqual([]);
});
