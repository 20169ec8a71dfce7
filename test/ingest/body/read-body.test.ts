import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { NodeExchange } from "../../../src/http/hooks.ts";
import { collectHeaderValues } from "../../../src/http/request.ts";
import { type BodyBudget, createBodyBudget } from "../../../src/ingest/body/body-budget.ts";
import { CEILING_MS, until } from "../../support/until.ts";
import { createTestReceive, pushChannel, type Take } from "../receive-support.ts";

const MIB = 1024 * 1024;
const MAX_BYTES = 5 * MIB;
const NOTHING = {
  received: 1,
  published: 0,
  duplicates: 0,
  ignored: 0,
  quarantined: 0,
  events: [],
  quarantine: [],
};

let server: Server;
/** Awaited before each request is read. */
let before: (incoming: IncomingMessage) => Promise<unknown>;
let take: Take;
let bodies: BodyBudget;
let takes: number[];
let decodeWaitMs: number;
let maxDecodeLockMs: number;
/** The chunks received from the socket, with their sizes. */
let pieces: { readonly piece: Buffer; readonly bytes: number }[];
beforeEach(async () => {
  takes = [];
  pieces = [];
  decodeWaitMs = CEILING_MS;
  maxDecodeLockMs = CEILING_MS;
  const budget = createBodyBudget();
  bodies = {
    ...budget,
    decoding: {
      ...budget.decoding,
      // A decoding rate that these tests never reach.
      bytesOf: () => 10_000 * MIB,
      get maxWaitMs() {
        return decodeWaitMs;
      },
      get maxLockMs() {
        return maxDecodeLockMs;
      },
    },
    room: {
      giveBack: (who, amount) => budget.room.giveBack(who, amount),
      take(who, amount) {
        takes.push(amount);
        return budget.room.take(who, amount);
      },
    },
  };
  const receive = createTestReceive((...delivery) => take(...delivery), {
    // The channel id stands for the organization.
    findChannel: (organizationId) => pushChannel({ maxBodyBytes: MAX_BYTES }, organizationId),
    bodies,
  });
  before = async () => {};
  server = createServer(async (incoming, outgoing) => {
    // Adding a listener would change how the stream is read, so `push` is wrapped instead.
    const push = incoming.push.bind(incoming);
    incoming.push = (piece: Buffer | null) => {
      if (piece !== null) pieces.push({ piece, bytes: piece.length });
      return push(piece);
    };
    await before(incoming);
    receive(String(incoming.headers["x-organization"] ?? "org_1"), new NodeExchange(incoming, outgoing));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(() => server.close());

async function send(body: Buffer, encoding?: string, organization = "org_1"): Promise<number | undefined> {
  const sending = request({
    port: (server.address() as AddressInfo).port,
    host: "127.0.0.1",
    method: "POST",
    headers: {
      "content-length": body.length,
      "x-organization": organization,
      ...(encoding && { "content-encoding": encoding }),
    },
  });
  sending.end(body);
  const [{ statusCode }] = await once(sending, "response");
  return statusCode;
}

describe("the headers of a delivery", () => {
  /** Returns the headers of a delivery as pairs. */
  async function headersOf(...sent: readonly string[]): Promise<readonly unknown[]> {
    let found: readonly unknown[] = [];
    before = async (incoming) => {
      found = Object.entries(collectHeaderValues(incoming));
    };
    take = async () => ({ kind: "accepted", outcome: NOTHING });
    const sending = request({
      port: (server.address() as AddressInfo).port,
      host: "127.0.0.1",
      method: "POST",
      headers: ["Host", "localhost", "Content-Length", "0", ...sent],
    });
    sending.end();
    await once(sending, "response");
    return found.filter((one) => !/^(?:host|content-length|connection)$/.test(String((one as string[])[0])));
  }

  it.each([
    ["decoded as UTF-8", ["X-Name", "caf\xc3\xa9"], ["x-name", "café"]],
    ["decoded as Latin-1 if they are not UTF-8", ["X-Name", "caf\xe9"], ["x-name", "café"]],
    ["decoded as UTF-8 if they are repeated", ["X-A", "\xc3\xa9", "X-A", "b"], ["x-a", ["é", "b"]]],
    ["converted to lower-case names", ["X-Id", "A", "ACCEPT", "*/*"], ["x-id", "A"], ["accept", "*/*"]],
    ["a list if a name repeats", ["X-Id", "a", "x-id", "b, c"], ["x-id", ["a", "b, c"]]],
    [
      "complete for a header of which Node only keeps the first value",
      ["From", "a", "From", "b"],
      ["from", ["a", "b"]],
    ],
    ["separate cookies as received", ["Cookie", "a=1", "Cookie", "b=2"], ["cookie", ["a=1", "b=2"]]],
    ["a single value for a header that Node returns as a list", ["Set-Cookie", "a=1"], ["set-cookie", "a=1"]],
    ["kept if the name is a property of every object", ["Constructor", "a"], ["constructor", "a"]],
    [
      "kept if the names are properties of every object, even one that Node omits",
      ["Constructor", "a", "__proto__", "b"],
      ["constructor", "a"],
      ["__proto__", "b"],
    ],
    ["empty strings if they have no value", ["X-Id", ""], ["x-id", ""]],
  ] as const)("are %s", async (_, sent, ...expected) => {
    expect(await headersOf(...sent)).toEqual(expected);
  });
});

describe("the buffer of a large body", () => {
  it("is freed as soon as the delivery is accepted", async () => {
    let body: Buffer = Buffer.alloc(0);
    take = async (_channel, delivery) => {
      ({ body } = delivery);
      await new Promise(setImmediate);
      expect(body.length).toBe(MIB);
      return { kind: "accepted", outcome: NOTHING };
    };
    expect(await send(Buffer.alloc(MIB))).toBe(200);
    expect(body.length).toBe(0);
  });

  it("is not freed if the delivery fails, because the buffer may still be sent to Redis", async () => {
    let body: Buffer = Buffer.alloc(0);
    take = (_channel, delivery) => {
      ({ body } = delivery);
      return Promise.reject(new Error("Redis does not answer"));
    };
    expect(await send(Buffer.alloc(MIB))).toBe(500);
    expect(body.length).toBe(MIB);
  });
});

describe("the chunks of a large body", () => {
  /** Returns the remaining sizes of the large buffers. */
  const leftOfLarge = (): readonly number[] =>
    pieces.filter(({ bytes }) => bytes >= 32 * 1024).map(({ piece }) => piece.length);

  it("are freed once they are joined, before the delivery is parsed", async () => {
    let left: readonly number[] = [];
    take = async (_channel, { body }) => {
      expect(body).toEqual(sent);
      left = leftOfLarge();
      return { kind: "accepted", outcome: NOTHING };
    };
    const sent = randomBytes(MIB);
    expect(await send(sent)).toBe(200);
    expect(left.length).toBeGreaterThan(0);
    expect(new Set(left)).toEqual(new Set([0]));
  });

  it("are freed after decoding if a compressed body arrived in one chunk", async () => {
    const plain = randomBytes(MIB);
    take = async (_channel, { body }) => {
      expect(body).toEqual(plain);
      return { kind: "accepted", outcome: NOTHING };
    };
    expect(await send(gzipSync(plain), "gzip")).toBe(200);
    expect(leftOfLarge().length).toBeGreaterThan(0);
    expect(new Set(leftOfLarge())).toEqual(new Set([0]));
  });
});

describe("a compressed body", () => {
  let digest: string;
  beforeEach(() => {
    take = (_channel, { body }) => {
      digest = `${body.length} ${body.subarray(0, 20).toString("hex")}`;
      return { kind: "accepted", outcome: NOTHING };
    };
  });
  const digestOf = (body: Buffer): string => `${body.length} ${body.subarray(0, 20).toString("hex")}`;

  it("in gzip format is decoded into one buffer of the size in the gzip trailer", async () => {
    const plain = Buffer.alloc(5 * MIB, "a");
    const packed = gzipSync(plain);
    expect(await send(packed, "gzip")).toBe(200);
    expect(digest).toBe(digestOf(plain));
    expect(takes).toEqual([plain.length + 1]);
  });

  it("with several gzip members is decoded completely, although its trailer only has the size of the last member", async () => {
    const parts = [randomBytes(300 * 1024), randomBytes(100 * 1024)];
    expect(await send(Buffer.concat(parts.map((part) => gzipSync(part))), "gzip")).toBe(200);
    expect(digest).toBe(digestOf(Buffer.concat(parts)));
  });

  it("with an impossible size in its gzip trailer reserves no more memory than gzip can decode to", async () => {
    const packed = gzipSync(Buffer.alloc(1_000));
    packed.writeUInt32LE(0xffff_fff0, packed.length - 4);
    expect(await send(packed, "gzip")).toBe(400);
    expect(Math.max(0, ...takes)).toBeLessThanOrEqual(packed.length * 1_032);
  });

  it.each([
    "identity",
    "UTF-8",
    "utf8",
    "none",
  ])("is read as it is if its Content-Encoding is %s", async (encoding) => {
    expect(await send(Buffer.from("x"), encoding)).toBe(200);
    expect(await send(Buffer.from("x"), `${encoding}x`)).toBe(415);
  });

  it("in brotli format is decoded completely, regardless of the number of chunks", async () => {
    const plain = Buffer.alloc(3 * MIB, "b");
    expect(await send(brotliCompressSync(plain), "br")).toBe(200);
    expect(digest).toBe(digestOf(plain));
  });
});

describe("a body that arrives before the gateway starts to read it", () => {
  const accepted = (): { readonly body: Promise<string> } => {
    const { promise: body, resolve } = Promise.withResolvers<string>();
    take = async (_channel, delivery) => {
      resolve(delivery.body.toString());
      return { kind: "accepted", outcome: NOTHING };
    };
    return { body };
  };

  it.each(["{}", ""])("is read unchanged: %j", async (text) => {
    const { body } = accepted();
    before = () => new Promise(setImmediate);
    expect(await send(Buffer.from(text))).toBe(200);
    expect(await body).toBe(text);
  });

  it("is complete if it arrived in several chunks", async () => {
    const { body } = accepted();
    before = (incoming) => until(() => incoming.complete);
    const sending = request({
      port: (server.address() as AddressInfo).port,
      host: "127.0.0.1",
      method: "POST",
    });
    sending.on("error", () => {});
    sending.write("[1,");
    sending.end("2]");
    expect(await body).toBe("[1,2]");
    expect(pieces.length).toBeGreaterThan(1);
  });

  it("is processed even if its sender has disconnected", async () => {
    const { body } = accepted();
    before = async (incoming) => {
      await until(() => incoming.complete);
      sending.destroy();
      await new Promise((resolve) => incoming.on("close", resolve));
    };
    const sending = request({
      port: (server.address() as AddressInfo).port,
      host: "127.0.0.1",
      method: "POST",
      headers: { "content-length": 2 },
    });
    sending.on("error", () => {}).end("{}");
    expect(await body).toBe("{}");
  });
});

describe("several large compressed bodies of an organization", () => {
  const plain = Buffer.alloc(MAX_BYTES, "a");
  const smaller = randomBytes(400 * 1024);
  const wholeBytes = [plain.length, smaller.length];
  /** Callbacks that end the deliveries in flight, by organization. */
  let atWork: Map<string, (() => void)[]>;
  beforeEach(() => {
    atWork = new Map();
    take = async (channel, { body }, onItems) => {
      const { organizationId } = channel;
      expect(wholeBytes).toContain(body.length);
      const others = atWork.get(organizationId) ?? [];
      atWork.set(organizationId, others);
      onItems();
      await new Promise<void>((resolve) => others.push(resolve));
      return { kind: "accepted", outcome: NOTHING };
    };
  });
  const countOf = (organization: string): number => atWork.get(organization)?.length ?? 0;
  const answerOne = (organization: string): void => atWork.get(organization)?.shift()?.();

  it.each([
    ["gzip, which states its size", "gzip", gzipSync(plain)],
    ["brotli, which does not", "br", brotliCompressSync(plain)],
  ])("wait for memory that bodies of the same organization use, but not for other organizations: %s", async (_, encoding, packed) => {
    const answers = Array.from({ length: 5 }, () => send(packed, encoding, "org_big"));
    await until(() => countOf("org_big") === 3 && bodies.decoding.queues.get("org_big")?.waiting === 2);
    const other = send(packed, encoding, "org_other");
    await until(() => countOf("org_other") === 1);
    expect(countOf("org_big")).toBe(3);
    answerOne("org_other");
    expect(await other).toBe(200);
    for (const answered of [1, 2, 3, 4, 5]) {
      answerOne("org_big");
      await until(() => countOf("org_big") === Math.min(3, 5 - answered));
    }
    expect(await Promise.all(answers)).toEqual([200, 200, 200, 200, 200]);
    expect(bodies.decoding.queues.size).toBe(0);
  });

  it("are decoded one by one, each after the previous body was parsed", async () => {
    const read: (() => void)[] = [];
    take = async (_channel, _delivery, onItems) => {
      await new Promise<void>((resolve) => read.push(resolve));
      onItems();
      return { kind: "accepted", outcome: NOTHING };
    };
    const answers = [send(gzipSync(plain), "gzip"), send(gzipSync(plain), "gzip")];
    await until(() => read.length === 1 && bodies.decoding.queues.get("org_1")?.waiting === 1);
    read[0]?.();
    await until(() => read.length === 2);
    read[1]?.();
    expect(await Promise.all(answers)).toEqual([200, 200]);
  });

  it("no longer wait for the previous body if that body is not parsed in time", async () => {
    maxDecodeLockMs = 1;
    let startedCount = 0;
    take = async () => {
      startedCount++;
      await until(() => startedCount === 3);
      return { kind: "accepted", outcome: NOTHING };
    };
    const answers = Array.from({ length: 3 }, () => send(gzipSync(plain), "gzip"));
    expect(await Promise.all(answers)).toEqual([200, 200, 200]);
  });

  it("release their memory if they turn out to be broken after they waited for more memory", async () => {
    const answers = Array.from({ length: 3 }, () => send(gzipSync(plain), "gzip"));
    await until(() => countOf("org_1") === 3);
    const broken = send(brotliCompressSync(smaller).subarray(0, -100), "br");
    await until(() => bodies.decoding.queues.get("org_1")?.waiting === 1);
    answerOne("org_1");
    expect(await broken).toBe(400);
    for (const _ of answers) answerOne("org_1");
    expect(await Promise.all(answers)).toEqual([200, 200, 200]);
    expect(bodies.decoding.queues.size).toBe(0);
  });

  it("reserve only the memory of their decoded size once that size is known", async () => {
    const packed = brotliCompressSync(smaller);
    const answers = Array.from({ length: 10 }, () => send(packed, "br"));
    await until(() => countOf("org_1") === 10);
    for (const _ of answers) answerOne("org_1");
    expect(new Set(await Promise.all(answers))).toEqual(new Set([200]));
  });

  it("are rejected if too many of them wait or if they wait too long", async () => {
    const packed = gzipSync(plain);
    const atOnce = Array.from({ length: 3 }, () => send(packed, "gzip"));
    await until(() => countOf("org_1") === 3);
    const waiting = Array.from({ length: 99 }, () => send(packed, "gzip"));
    await until(() => bodies.decoding.queues.get("org_1")?.waiting === 99);
    decodeWaitMs = 1;
    expect(await send(packed, "gzip")).toBe(503);
    decodeWaitMs = CEILING_MS;
    waiting.push(send(packed, "gzip"));
    await until(() => bodies.decoding.queues.get("org_1")?.waiting === 100);
    expect(await send(packed, "gzip")).toBe(503);
    const all = [...atOnce, ...waiting];
    for (let answered = 0; answered < all.length; answered++) {
      await until(() => countOf("org_1") > 0);
      answerOne("org_1");
    }
    expect(new Set(await Promise.all(all))).toEqual(new Set([200]));
    expect(bodies.decoding.queues.size).toBe(0);
  });
});
