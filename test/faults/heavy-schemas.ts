import { setTimeout as delay } from "node:timers/promises";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { startSharedStores } from "../support/stores.ts";
import { quantile, type Rig } from "./rig.ts";
import { createTenant, post, type Sent } from "./tenants.ts";

const HEAVY = 48;
/** Gives about 75 KB of JSON per schema. Each schema is different. */
const PROPERTIES = 700;
const TINY = 40;

const heavySchema = (nth: number): object => ({
  type: "object",
  required: ["id"],
  properties: Object.fromEntries(
    Array.from({ length: PROPERTIES }, (_, n) => [
      `property_${nth}_${n}`,
      { type: ["string", "null"], minLength: n % 7, maxLength: 100 + nth, pattern: `^[a-z${n % 10}]*$` },
    ]),
  ),
});

/**
 * Restarts a gateway with many large schemas of one organization, then sends a delivery for each at the same time. Each must be
 * accepted in the end, with only 503 responses before. Deliveries to a small schema of another organization must not wait.
 */
export const heavySchemas: Rig = async ({ rounds }) => {
  await using stores = await startSharedStores();
  const start = (): Promise<GatewayProcess> =>
    startGatewayProcess({ ...stores.env, INLET_LOG_LEVEL: "warn" });
  let gateway = await start();
  const faults: string[] = [];
  const lines: string[] = [];
  try {
    const events = (schema: object) => [{ type: "made", idPath: "$.id", schema }];
    const heavy = await (await createTenant(gateway, "Heavy")).install(
      Array.from({ length: HEAVY }, (_, nth) => ({
        uid: `in-${nth}`,
        kind: "webhook",
        events: events(heavySchema(nth)),
      })),
    );
    const [tiny] = await (await createTenant(gateway, "Tiny")).install([
      { uid: "in", kind: "webhook", events: events({ type: "object", required: ["id"] }) },
    ]);
    for (let round = 0; round < rounds; round++) {
      await gateway[Symbol.asyncDispose]();
      gateway = await start();
      const { origin } = gateway;
      const tries: Sent[] = [];
      const sending = heavy.map(async (path, nth) => {
        for (let status = 0; status !== 200; ) {
          const sent = await post(`${origin}${path}`, { id: `heavy-${round}-${nth}` });
          tries.push(sent);
          ({ status } = sent);
          if (status !== 200) await delay(1_000 * Number(sent.retryAfter ?? 1));
          if (status !== 200 && status !== 503) return;
        }
      });
      const taken: Sent[] = [];
      for (let n = 0; n < TINY; n++) taken.push(await post(`${origin}${tiny}`, { id: `tiny-${round}-${n}` }));
      await Promise.all(sending);
      const rejected = taken.filter(({ status }) => status !== 200);
      const unexpected = tries.filter(({ status }) => status !== 200 && status !== 503);
      const withoutRetryAfter = tries.filter(
        ({ status, retryAfter }) => status === 503 && retryAfter === null,
      );
      if (rejected.length > 0) faults.push(`${rejected.length} of ${TINY} small deliveries were rejected`);
      if (unexpected.length > 0)
        faults.push(
          `${unexpected.length} large deliveries got an unexpected status: ${unexpected[0]?.status}`,
        );
      if (withoutRetryAfter.length > 0)
        faults.push(`${withoutRetryAfter.length} responses with status 503 have no Retry-After header`);
      const ms = (sent: readonly Sent[], share: number): string =>
        `${quantile(
          sent.map((one) => one.ms),
          share,
        ).toFixed(0)} ms`;
      lines.push(
        `${HEAVY} large schemas: ${tries.length} attempts, p50 ${ms(tries, 0.5)}, slowest ${ms(tries, 1)}`,
        `small schema of another organization, ${TINY} deliveries: p50 ${ms(taken, 0.5)}, slowest ${ms(taken, 1)}`,
      );
    }
  } finally {
    await gateway[Symbol.asyncDispose]();
  }
  return { lines, faults };
};
