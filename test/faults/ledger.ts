import type { GatewayProcess } from "../support/gateway-process.ts";
import type { SharedStores } from "../support/stores.ts";
import type { Ledger } from "./senders.ts";

/** Comparison of the stored entries with the acknowledgments of the senders. */
export interface LedgerAudit {
  readonly entries: number;
  readonly lost: readonly string[];
  readonly doubled: readonly string[];
}

/** Installs a channel for the events of `senders.ts`. Returns its path. */
export async function installLedger(gateway: GatewayProcess): Promise<string> {
  const types = ["t0", "t1", "t2"].map((type) => ({ type, typePath: "$.type", idPath: "$.id" }));
  const blueprint = await gateway.api<{ id: string }>("POST", "/blueprints", {
    uid: "ledger",
    title: "Ledger",
    channels: [{ uid: "in", kind: "webhook", title: "In", config: {}, events: types }],
  });
  const app = await gateway.api<{ channels: readonly { url: string }[] }>("POST", "/apps/install", {
    blueprintId: blueprint.id,
  });
  return new URL(app.channels[0]?.url ?? "").pathname;
}

export async function auditLedger(
  { client }: Pick<SharedStores, "client">,
  ledger: Ledger,
): Promise<LedgerAudit> {
  const seen = new Map<string, number>();
  for (const topic of await client.keys("events.*")) {
    for (const [, fields] of await client.xrange(topic, "-", "+")) {
      const id = fields[fields.indexOf("id") + 1] ?? "";
      seen.set(id, (seen.get(id) ?? 0) + 1);
    }
  }
  return {
    entries: [...seen.values()].reduce((sum, count) => sum + count, 0),
    lost: [...ledger.acknowledged].filter((id) => !seen.has(id)),
    doubled: [...seen].filter(([, count]) => count > 1).map(([id]) => id),
  };
}

export const countsOf = (ledger: Ledger, { entries, lost, doubled }: LedgerAudit): readonly string[] => [
  `attempts ${ledger.attempts}, acknowledged ${ledger.acknowledged.size}, entries ${entries}`,
  `lost ${lost.length}, duplicated ${doubled.length}, unexpected responses ${ledger.wrong.length}`,
];

export const faultsIn = (ledger: Ledger, { lost, doubled }: LedgerAudit): readonly string[] => [
  ...lost.map((id) => `lost ${id}`),
  ...doubled.map((id) => `duplicated ${id}`),
  ...ledger.wrong.map((answer) => `unexpected response ${answer}`),
  ...(ledger.acknowledged.size === 0 ? ["no event was acknowledged"] : []),
];
