import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createQuarantineStore } from "../../src/bus/quarantine/quarantine.ts";
import { createSourcePositions } from "../../src/bus/sources/source-positions.ts";
import { webhookConfigSchema } from "../../src/channels/webhook/config.ts";
import type { Definition } from "../../src/event/definition.ts";
import type { CompiledChannel } from "../../src/ingest/compile-channel.ts";
import { createGather } from "../../src/ingest/gather.ts";
import { createWriter, type WriterDeps } from "../../src/ingest/write.ts";
import { UnavailableError } from "../../src/lib/errors.ts";
import { validatorOf } from "../../src/lib/json-schema/evaluate.ts";
import { normalize } from "../../src/normalize/normalize.ts";
import { openedBus, testPublish } from "../bus/support.ts";
import { deliveryOf, rulesOf } from "../normalize/support.ts";
import { opened } from "../support/opened.ts";
import { senderOf } from "../verify/support.ts";

const { redis } = openedBus();
const positions = opened(() => createSourcePositions({ redis }));
const quarantine = opened(() => createQuarantineStore({ redis, publish: testPublish(redis) }));

/** Unhandled rejections. One of them would end a gateway. */
const unheard: unknown[] = [];
const note = (reason: unknown): void => void unheard.push(reason);
beforeEach(() => {
  unheard.length = 0;
  process.on("unhandledRejection", note);
});
afterEach(() => {
  process.off("unhandledRejection", note);
});

/** Opens a channel whose schemas cannot be compiled at the moment. */
function open(definition: Definition = { type: "tick", schema: { type: "object" } }) {
  const config = webhookConfigSchema.parse({});
  const rules = rulesOf([definition]);
  const channel: CompiledChannel = {
    identity: rules.channel,
    version: 1,
    connectionId: null,
    state: "active",
    pause: undefined,
    limits: config.limits,
    kindConfig: config,
    acceptsContentType: () => true,
    answer: "outcome",
    config: config,
    rules,
    methods: ["POST"],
    sender: senderOf(config),
  };
  const validatorFor = () => Promise.reject(new UnavailableError("no schema is compiled now"));
  const deps: WriterDeps = {
    publish: testPublish(redis),
    quarantine,
    normalize: (rules, delivery) =>
      normalize(rules, delivery, {
        validatorFor: (schema) => (typeof schema === "boolean" ? validatorOf(schema) : validatorFor()),
        newEventId: () => "fresh",
      }),
    concludeFetched() {},
    countResult() {},
    concludeRedriven() {},
    countUnset() {},
  };
  return {
    channel,
    gather: createGather({ ...deps, publishNormalized: createWriter(deps).publishNormalized }),
  };
}

it("a delivery in a batch that cannot be parsed makes its own write fail, and causes no unhandled rejection", async () => {
  const { channel, gather } = open();
  const [late, never] = gather(channel, [deliveryOf({ n: 1 }), deliveryOf({ n: 2 })]);
  expect(never?.count).toBe(1);
  // Writes wait for earlier writes and for the rate of their organization.
  await setImmediate();
  await setImmediate();
  expect(unheard).toEqual([]);
  const { signal } = new AbortController();
  const written = late?.write({ signal, position: { source: 1, epoch: 1, version: 0 } });
  await expect(written).rejects.toThrow("no schema is compiled now");
});

it("deliveries whose items a `when` excludes share a write with others, and move the position", async () => {
  const { channel, gather } = open({ type: "tick", when: false });
  const writes = gather(channel, [deliveryOf({ n: 1 }), deliveryOf({ n: 2 })]);
  expect(writes).toMatchObject([{ count: 2, items: 2 }]);
  const taken = await positions.takeOver({ number: 1, topics: [] });
  if (taken.kind !== "acquired") throw new Error(taken.kind);
  const { signal } = new AbortController();
  const position = { source: 1, epoch: taken.epoch, version: taken.version, value: "2" };
  const outcome = { received: 1, published: 0, ignored: 1, quarantined: 0, events: [] };
  expect(await writes[0]?.write({ signal, position })).toMatchObject([{ outcome }, { outcome }]);
  expect(await positions.read(1)).toMatchObject({ value: "2" });
});
