import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { request } from "node:http";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Listener, startListener } from "../../../src/gateway/listener.ts";
import { createHooks } from "../../../src/http/hooks.ts";
import { type BodyBudget, createBodyBudget, HeldBody } from "../../../src/ingest/body/body-budget.ts";
import { CEILING_MS, until } from "../../support/until.ts";
import { createTestReceive, pushChannel, type Take } from "../receive-support.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
const TOTAL = 4 * MIB;

let listener: Listener;
let budget: BodyBudget;
let nowMs = 0;
/** Callbacks that end the deliveries in flight. */
let unanswered: (() => void)[];
/** Their sizes. */
const waiting = new Set<number>();
let answersAtOnce: boolean;
beforeEach(async () => {
  nowMs = 0;
  unanswered = [];
  waiting.clear();
  answersAtOnce = true;
  budget = createBodyBudget({ totalBytes: TOTAL, nowMs: () => nowMs });
  // The channel id stands for the organization.
  const findChannel = (organizationId: string) => pushChannel({ maxBodyBytes: 3 * MIB }, organizationId);
  const hooks = createHooks((...request) =>
    createTestReceive(take, { findChannel, bodies: budget })(...request),
  );
  listener = await startListener({ host: "127.0.0.1", port: 0 }, hooks.fetch);
});
afterEach(() => listener[Symbol.asyncDispose]());

const withDecoding = (limits: Partial<BodyBudget["decoding"]>): BodyBudget => ({
  ...budget,
  decoding: { ...budget.decoding, ...limits },
});

/** Resolves with the size of the body. */
const take: Take = async (_, { body }) => {
  waiting.add(body.length);
  if (!answersAtOnce) await new Promise<void>((resolve) => unanswered.push(resolve));
  return {
    kind: "handshake",
    reply: { status: 200, contentType: "text/plain", headers: {}, body: String(body.length) },
  };
};

function answerAll(): void {
  answersAtOnce = true;
  for (const answer of unanswered) answer();
}

/** Sends the data and keeps the request open. */
function start(body: Buffer, headers: Readonly<Record<string, string>> = {}) {
  const { port } = listener;
  const { "x-organization": organization = "org_1", ...others } = headers;
  const path = `/hooks/${organization}`;
  const sending = request({ port, host: "127.0.0.1", method: "POST", path, headers: others });
  sending.on("error", () => {});
  const answer = once(sending, "response").then(async ([response]) => {
    let text = "";
    for await (const chunk of response) text += chunk;
    return response.statusCode === 200 ? text : String(JSON.parse(text).code);
  });
  answer.catch(() => {});
  sending.write(body);
  return { sending, answer };
}

function send(body: Buffer, headers?: Readonly<Record<string, string>>): Promise<string> {
  const { sending, answer } = start(body, headers);
  sending.end();
  return answer;
}

/** Returns the bytes that an organization holds, from the room that is left. */
function heldBytes(organizationId = "org_1"): number {
  let left = 0;
  while (budget.room.take(organizationId, 1024) === true) left += 1024;
  if (left > 0) budget.room.giveBack(organizationId, left);
  return TOTAL / 2 - left;
}
const isFree = (): boolean => heldBytes() === 0;

describe("the memory limit for request bodies", () => {
  it("limits the total bytes of an organization's concurrent bodies", async () => {
    const slow = start(Buffer.alloc(1.5 * MIB));
    await until(() => heldBytes() > 1.3 * MIB);
    expect(await start(Buffer.alloc(1.5 * MIB)).answer).toBe("unavailable");
    // Small bodies are not charged.
    expect(await send(Buffer.from("{}"))).toBe("2");
    slow.sending.end();
    expect(await slow.answer).toBe(String(1.5 * MIB));
    await until(isFree);
    expect(await send(Buffer.alloc(1.5 * MIB))).toBe(String(1.5 * MIB));
  });

  it("counts a body until its response is sent", async () => {
    answersAtOnce = false;
    const first = send(Buffer.alloc(1.5 * MIB));
    await until(() => unanswered.length === 1);
    expect(await send(Buffer.alloc(1.5 * MIB))).toBe("unavailable");
    unanswered[0]?.();
    expect(await first).toBe(String(1.5 * MIB));
    await until(isFree);
  });

  it.each([
    ["gzip", gzipSync(Buffer.alloc(1_900 * KIB))],
    ["br", brotliCompressSync(Buffer.alloc(1_900 * KIB))],
  ])("counts the decoded bytes of a compressed body: %s", async (encoding, bomb) => {
    expect(bomb.length).toBeLessThan(64 * 1024);
    answersAtOnce = false;
    const packed = { "content-encoding": encoding };
    const first = send(bomb, packed);
    await until(() => unanswered.length === 1);
    expect(heldBytes()).toBeGreaterThan(1.7 * MIB);
    // The rate allows another body, the budget does not.
    nowMs += 60_000;
    expect(await send(bomb, packed)).toBe("unavailable");
    answerAll();
    expect(await first).toBe(String(1_900 * KIB));
    await until(isFree);
  });

  it("delays compressed bodies of an organization that decode to more than a quarter of its limit per second", async () => {
    budget = withDecoding({ maxWaitMs: CEILING_MS });
    const [bytes, few] = [700 * KIB, 100 * KIB];
    const zipped = { "content-encoding": "gzip" };
    expect(await send(gzipSync(Buffer.alloc(bytes)), zipped)).toBe(String(bytes));
    const large = send(gzipSync(Buffer.alloc(bytes)), zipped);
    const small = send(gzipSync(Buffer.alloc(few)), zipped);
    await until(() => budget.decoding.queues.get("org_1")?.waiting === 2);
    const others = { ...zipped, "x-organization": "org_2" };
    expect(await send(gzipSync(Buffer.alloc(bytes)), others)).toBe(String(bytes));
    expect(await send(Buffer.alloc(bytes))).toBe(String(bytes));
    expect(budget.decoding.queues.get("org_1")?.waiting).toBe(2);
    nowMs += 1_000;
    expect(await large).toBe(String(bytes));
    nowMs += 1_000;
    expect(await small).toBe(String(few));
    budget = withDecoding({ maxWaitMs: 1 });
    expect(await send(gzipSync(Buffer.alloc(bytes)), zipped)).toBe(String(bytes));
    nowMs += 500;
    expect(await send(gzipSync(Buffer.alloc(bytes)), zipped)).toBe("unavailable");
    await until(isFree);
    expect(budget.decoding.queues.size).toBe(0);
  });

  it("delays the next compressed body by at most about a second, even if the last one far exceeded the decoding rate", async () => {
    budget = withDecoding({ bytesOf: () => 1, maxWaitMs: CEILING_MS });
    const zipped = { "content-encoding": "gzip" };
    expect(await send(gzipSync(Buffer.alloc(2 * MIB)), zipped)).toBe(String(2 * MIB));
    const next = send(gzipSync(Buffer.from("{}")), zipped);
    await until(() => budget.decoding.queues.get("org_1")?.waiting === 1);
    nowMs += 2_000;
    expect(await next).toBe("2");
  });

  it("allows the next compressed body to be decoded when decoding of the previous body fails", async () => {
    // The budget allows both, whichever arrives first.
    budget = createBodyBudget({ totalBytes: 100 * MIB, nowMs: () => nowMs });
    budget = withDecoding({ maxWaitMs: CEILING_MS });
    const packed = gzipSync(randomBytes(700 * KIB));
    const broken = Buffer.concat([packed.subarray(0, 300 * KIB), packed.subarray(400 * KIB)]);
    const zipped = { "content-encoding": "gzip" };
    const answers = await Promise.all([send(broken, zipped), send(packed, zipped)]);
    expect(answers).toEqual(["invalid_parameters", String(700 * KIB)]);
    expect(budget.decoding.queues.size).toBe(0);
  });

  it("allows the next compressed body to be decoded as soon as a small one is decoded", async () => {
    const patient = withDecoding({ maxWaitMs: CEILING_MS });
    const [small, next] = [new HeldBody(patient, "org_1"), new HeldBody(patient, "org_1")];
    expect(await small.decodeTurn.wait(100 * KIB)).toBe(true);
    const later = next.decodeTurn.wait(MIB);
    small.decodeTurn.endDecoding(100 * KIB);
    expect([await later, small.decodeTurn.isParsing]).toEqual([true, false]);
    for (const one of [small, next]) one.release();
    expect(budget.decoding.queues.size).toBe(0);
  });

  it("allows only one large compressed body per organization to be decoded and read at a time", async () => {
    const patient = withDecoding({ maxWaitMs: CEILING_MS, maxLockMs: CEILING_MS });
    const [first, second, left, other] = ["org_1", "org_1", "org_1", "org_2"].map(
      (id) => new HeldBody(patient, id),
    ) as [HeldBody, HeldBody, HeldBody, HeldBody];
    expect(await first.decodeTurn.wait(MIB)).toBe(true);
    let isSecond = false;
    const later = second.decodeTurn.wait(MIB).then((may) => {
      isSecond = may;
    });
    const waitResult = left.decodeTurn.wait(MIB);
    expect(await other.decodeTurn.wait(MIB)).toBe(true);
    left.release();
    expect(await waitResult).toBe(false);
    first.decodeTurn.endDecoding(MIB);
    expect([isSecond, first.decodeTurn.isParsing]).toEqual([false, true]);
    first.endParsing();
    await later;
    expect(isSecond).toBe(true);
    for (const one of [first, second, other]) one.release();
    expect(budget.decoding.queues.size).toBe(0);
  });

  it("limits the total wait of a compressed body that needs more memory than it reserved at first", async () => {
    const patient = withDecoding({ maxWaitMs: CEILING_MS, maxLockMs: CEILING_MS });
    const [first, other, third] = ["org_1", "org_1", "org_1"].map((id) => new HeldBody(patient, id)) as [
      HeldBody,
      HeldBody,
      HeldBody,
    ];
    expect(await first.decodeTurn.wait(MIB)).toBe(true);
    const waited = other.decodeTurn.wait(MIB);
    nowMs += CEILING_MS;
    first.release();
    expect(await waited).toBe(true);
    const next = third.decodeTurn.wait(MIB);
    expect(await other.decodeTurn.wait(2 * MIB)).toBe(false);
    expect(await next).toBe(true);
    for (const one of [other, third]) one.release();
    expect(budget.decoding.queues.size).toBe(0);
  });

  it("leaves memory for other organizations when one organization sends 30 large bodies", async () => {
    answersAtOnce = false;
    const flood = Array.from({ length: 30 }, () => send(Buffer.alloc(MIB)));
    await until(() => unanswered.length > 0);
    const other = send(Buffer.alloc(1_900 * KIB), { "x-organization": "org_2" });
    await until(() => waiting.has(1_900 * KIB));
    const third = send(Buffer.alloc(1_200 * KIB), { "x-organization": "org_3" });
    await until(() => waiting.has(1_200 * KIB));
    answerAll();
    expect(await other).toBe(String(1_900 * KIB));
    expect(await third).toBe(String(1_200 * KIB));
    expect((await Promise.all(flood)).filter((answer) => answer === String(MIB))).not.toEqual([]);
    await until(isFree);
  });

  it("rejects slowly arriving bodies with 503 when other bodies need the memory", async () => {
    const slow = Array.from({ length: 13 }, () => start(Buffer.alloc(200 * KIB)));
    await until(() => heldBytes() > 1.1 * MIB);
    // Their age is still too low to compare their rates.
    expect(await send(Buffer.alloc(1.5 * MIB))).toBe("unavailable");
    nowMs += 3_000;
    expect(await send(Buffer.alloc(1.5 * MIB))).toBe(String(1.5 * MIB));
    const answers = await Promise.race([Promise.all(slow.map(({ answer }) => answer)), slow[0]?.answer]);
    expect(answers).toBe("unavailable");
    for (const { sending } of slow) sending.end();
    const all = await Promise.all(slow.map(({ answer }) => answer));
    expect(all).toContain(String(200 * KIB));
    await until(isFree);
  });

  it("releases the bytes of a body that is rejected with 413 for exceeding the channel's size limit", async () => {
    expect(await start(Buffer.alloc(3_100 * KIB), { "content-length": String(4 * MIB) }).answer).toBe(
      "payload_too_large",
    );
    const large = gzipSync(Buffer.alloc(3_100 * KIB));
    budget = createBodyBudget({ totalBytes: 100 * MIB });
    expect(await send(large, { "content-encoding": "gzip" })).toBe("payload_too_large");
    expect(await start(Buffer.alloc(3_100 * KIB)).answer).toBe("payload_too_large");
    expect(budget.reading.size).toBe(0);
  });

  it("releases the bytes of a body whose sender disconnects", async () => {
    const { sending } = start(Buffer.alloc(1.5 * MIB));
    await until(() => heldBytes() > 1.3 * MIB);
    sending.destroy();
    await until(isFree);
  });
});
