import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import type { ChannelKind } from "../../../src/channels/kind.ts";
import { pullFields } from "../../../src/channels/pull/pull-fields.ts";
import { commonFields } from "../../../src/event/channel.ts";

const configSchema = z.strictObject({
  ...commonFields,
  ...pullFields,
  url: z
    .url()
    .describe("URL of a server that responds to `?after=<n>` with the numbers above n, as a JSON array."),
});

const cursorSchema = z.strictObject({ after: z.int() });
const PAUSE_MS = 10;

/** A channel kind that requests the next numbers from a server in a loop. */
export const counter: ChannelKind = {
  kind: "counter",
  configSchema,
  secretFields: [],
  addressed: false,
  profile: {
    roots: new Map([["number", { valueIn: ({ delivery }) => delivery.headers.number }]]),
    ownId: ({ deliveryId = "" }) => ({ id: deliveryId, remembered: deliveryId }),
  },
  cursor: {
    show: (cursor) => ({ after: Number(cursor) }),
    parse(value) {
      const { data, error } = cursorSchema.safeParse(value);
      return data
        ? { ok: true, value: String(data.after) }
        : { ok: false, error: [{ path: "after", message: error.message }] };
    },
  },
  originOf: (stored) => new URL(configSchema.parse(stored).url).origin,
  needsSetup: () => false,
  async start({ outbound, clock }) {
    return {
      stream: {
        reconnect: () => ({ initialMs: PAUSE_MS, maxMs: 1_000, factor: 2, jitter: 0, resetAfterMs: 0 }),
        async runConnection({ config: stored, cursor, ingest, opened, signal }) {
          const { url } = configSchema.parse(stored);
          for (let after = Number(cursor ?? 0); !signal.aborted; ) {
            const request = { method: "GET", url: `${url}?after=${after}`, headers: {} };
            const { body } = await outbound.request(request, { signal });
            opened();
            for (const number of z.array(z.int()).parse(JSON.parse(body.toString()))) {
              const headers = { "content-type": "application/json", number: String(number) };
              const delivery = { headers, body: Buffer.from(`{"n":${number}}`), arrivedAtMs: clock() };
              const deliveryId = String(number);
              await ingest({ ...delivery, deliveryId }, { cursor: deliveryId, signal });
              after = number;
            }
            await delay(PAUSE_MS, undefined, { signal });
          }
          return { kind: "done" };
        },
      },
      async [Symbol.asyncDispose]() {},
    };
  },
};
