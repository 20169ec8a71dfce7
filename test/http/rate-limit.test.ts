import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openRedis, type RedisBus } from "../../src/bus/connection/redis.ts";
import { createRateLimiters } from "../../src/bus/limits/rate-limiter.ts";
import { createFailedTokens } from "../../src/http/callers/failed-tokens.ts";
import { createLog } from "../../src/log.ts";
import { awayBus, createTestApi, type TestApi } from "../support/api.ts";
import { createTestIam } from "../support/iam.ts";
import { opened } from "../support/opened.ts";
import { startRedis } from "../support/redis.ts";
import { createTestRedis, type TestRedis } from "../support/test-redis.ts";
import { CEILING_MS, until } from "../support/until.ts";

const open = (server: Pick<TestRedis, "url">): Promise<RedisBus> =>
  openRedis({
    url: server.url,
    log: createLog({ level: "silent" }),
    durability: "none",
    durabilityAsserted: false,
    signal: new AbortController().signal,
  });

const server = opened(createTestRedis);
const redis = opened(() => open(server));

const limitsOf = ({ headers }: { headers: Headers }) =>
  ["limit", "remaining", "reset"].map((name) => Number(headers.get(`ratelimit-${name}`) ?? Number.NaN));

const isWithinWindow = (seconds = 0): boolean => seconds > 0 && seconds <= 60;

describe("a rate limit", () => {
  it("is shared by all gateways, separate per key, and reset after its window", async () => {
    await using otherRedis = await open(server);
    const options = { name: "shared", limit: 5, windowSeconds: 600 };
    const [one, other] = [redis, otherRedis].map((each) =>
      createRateLimiters({ redis: each, timeoutMs: CEILING_MS })(options),
    );
    if (!one || !other) throw new Error("no limiters");
    const states = [];
    for (let i = 0; i < 6; i++) states.push(await (i % 2 ? one : other).take("a"));
    expect(states.map(({ remaining }) => remaining)).toEqual([4, 3, 2, 1, 0, 0]);
    expect(states.map(({ allowed }) => allowed)).toEqual([true, true, true, true, true, false]);
    expect((await one.take("b")).remaining).toBe(4);
    const key = "inlet:rate:shared:a";
    const leftMs = await server.client.pttl(key);
    expect(leftMs > 0 && leftMs <= 600_000).toBe(true);
    await server.client.pexpire(key, 1);
    await until(async () => (await server.client.exists(key)) === 0);
    expect((await one.take("a")).remaining).toBe(4);
  });

  it("is counted in the memory of each gateway while Redis does not respond, and then in Redis again", async () => {
    await using own = await startRedis();
    await using ownRedis = await open(own);
    // Long enough for the first request on a busy machine.
    const timeoutMs = 3_000;
    const limiter = createRateLimiters({ redis: ownRedis, timeoutMs })({
      name: "outage",
      limit: 10,
      windowSeconds: 600,
    });
    expect((await limiter.take("a")).remaining).toBe(9);
    own.signal("SIGSTOP");
    // These requests do not wait for Redis, which continues only after the last response.
    const away = [];
    for (let i = 0; i < 12; i++) away.push(await limiter.take("a"));
    expect(away.map(({ allowed }) => allowed)).toEqual([...Array(10).fill(true), false, false]);
    own.signal("SIGCONT");
    await until(async () => (await limiter.take("b")) && Number(await own.client.exists(keyOf("b"))) === 1);
    expect((await limiter.take("a")).allowed).toBe(true);
  });

  it("is counted in the memory of each gateway while Redis has no free memory", async () => {
    await using own = await startRedis();
    await using ownRedis = await open(own);
    await own.client.config("SET", "maxmemory", "1");
    const limiter = createRateLimiters({ redis: ownRedis })({ name: "full", limit: 2, windowSeconds: 600 });
    const allowed = [];
    for (let i = 0; i < 3; i++) allowed.push((await limiter.take("a")).allowed);
    expect(allowed).toEqual([true, true, false]);
  });

  const keyOf = (key: string): string => `inlet:rate:outage:${key}`;
});

describe("rate-limited API requests", () => {
  let api: TestApi;
  let other: TestApi;
  beforeAll(async () => {
    const openBus = async () => ({ ...awayBus(), redis });
    api = await createTestApi({
      openBus,
      callers: { apiRequestsPerMinute: 5 },
      trustProxy: ["127.0.0.0/8"],
    });
    other = await createTestApi({ openBus, trustProxy: ["127.0.0.0/8"] });
  });
  afterAll(async () => {
    await api[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
  });

  it("receive the number of remaining requests in every response, and 429 when no request remains", async () => {
    const token = await api.keyWith("blueprints.read");
    const call = api.as(token);
    const answers = [
      await call("GET", "/blueprints"),
      await call("GET", "/blueprints?limit=x"),
      await call("POST", "/blueprints", {}),
      await call("GET", "/blueprints/bp_x"),
      await call("GET", "/no-such-thing"),
      await call("GET", "/blueprints"),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 400, 403, 404, 404, 429]);
    expect(answers.map((answer) => limitsOf(answer).slice(0, 2))).toEqual(
      [4, 3, 2, 1, 0, 0].map((remaining) => [5, remaining]),
    );
    for (const answer of answers) expect(isWithinWindow(limitsOf(answer)[2])).toBe(true);
    const refused = answers.at(-1);
    expect(refused?.body).toEqual({ code: "rate_limited", message: expect.any(String) });
    expect(refused?.headers.get("retry-after")).toBe(refused?.headers.get("ratelimit-reset"));
    expect((await api.as(await api.keyWith("*"))("GET", "/blueprints")).status).toBe(200);
  });

  it("with an access token count against the limit of its API key", async () => {
    const token = await api.keyWith("*");
    const { body } = await api.as(token)("POST", "/auth/tokens");
    const answer = await api.as(body.accessToken)("GET", "/blueprints");
    expect(limitsOf(answer).slice(0, 2)).toEqual([5, 3]);
  });

  /** Sends a request from this address through a proxy on this machine. */
  const from = async (address: string, token: string | undefined, to = api) => {
    const response = await to.app.request(
      "/v1/blueprints",
      {
        headers: {
          "x-forwarded-for": address,
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
      },
      { incoming: { socket: { remoteAddress: "127.0.0.1" } } },
    );
    return { status: response.status, headers: response.headers, body: await response.json() };
  };

  it("with a valid token are accepted even if wrong tokens from the same address are rejected with 429", async () => {
    const { token } = await (await createTestIam(api.database)).addKey({ permissions: ["*"] });
    const guesser = "192.0.2.1";
    expect((await from(guesser, token)).status).toBe(200);
    const statuses = new Map<number, number>();
    let first: Awaited<ReturnType<typeof from>> | undefined;
    for (let i = 0; i < 61; i++) {
      const answer = await from(guesser, `ik_guess${i}`);
      first ??= answer;
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
    }
    expect([...statuses]).toEqual([
      [401, 60],
      [429, 1],
    ]);
    expect(first && limitsOf(first).slice(0, 2)).toEqual([60, 59]);
    const refused = await from(guesser, "ik_another");
    expect([refused.status, (refused.body as { code: string }).code]).toEqual([429, "rate_limited"]);
    expect(isWithinWindow(Number(refused.headers.get("retry-after")))).toBe(true);
    expect((await from(guesser, undefined)).status).toBe(401);
    expect((await from("192.0.2.2", token)).status).toBe(200);
    expect((await from(`203.0.113.9, ${guesser}`, "ik_another")).status).toBe(429);
    const fresh = await (await createTestIam(api.database)).addKey({ permissions: ["*"] });
    const guesses = Array.from({ length: 100 }, (_, i) => from(guesser, `ik_flood${i}`));
    const right = await Promise.all([token, fresh.token, token].map((one) => from(guesser, one)));
    expect(right.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await Promise.all(guesses)).every(({ status }) => status === 429)).toBe(true);
    const line = api.lines.findLast(({ status }) => status === 429);
    expect(line).toMatchObject({ clientAddress: guesser });
  });

  it("do not wait for hundreds of requests with wrong tokens from another address", async () => {
    const options = { name: "crowd", limit: 1, windowSeconds: 600 };
    const failedTokens = createFailedTokens(createRateLimiters({ redis, timeoutMs: CEILING_MS })(options));
    for (const network of ["guesser", "office"])
      for (const token of ["wrong", "wrong too"]) await failedTokens.note(network, token);
    const database = Promise.withResolvers<void>();
    const asked: string[] = [];
    const lookUp = (network: string, token: string) =>
      failedTokens.lookUp(network, token, async () => {
        asked.push(network);
        await database.promise;
        return { by: "nobody", why: "unknown" };
      });
    const guesses = Array.from({ length: 8 + 256 }, (_, i) => lookUp("guesser", `guess ${i}`));
    expect(await lookUp("guesser", "one too many")).toBeUndefined();
    const other = lookUp("office", "another's");
    database.resolve();
    expect(await other).toBeDefined();
    // The database handles eight lookups at once and one more of the guesser. Then the other address is next.
    expect(asked.indexOf("office")).toBeLessThan(10);
    expect(await Promise.all(guesses)).not.toContain(undefined);
    expect(await lookUp("guesser", "one more")).toBeDefined();
  });

  it("with wrong tokens are counted together for all addresses of an IPv6 /64 network", async () => {
    for (let i = 0; i < 61; i++) await from(`2001:db8:0:7::${i.toString(16)}`, `ik_guess6${i}`);
    expect((await from("2001:db8:0:7:ffff::1", "ik_other")).status).toBe(429);
    expect((await from("2001:db8:0:8::1", "ik_other")).status).toBe(401);
  });

  it("with a wrong token count only once per token, and requests without a token do not count", async () => {
    for (let i = 0; i < 100; i++) {
      const answer = await from("192.0.2.3", i % 2 ? "ik_forgotten" : undefined);
      expect(answer.status).toBe(401);
    }
    expect(limitsOf(await from("192.0.2.3", "ik_forgotten")).slice(0, 2)).toEqual([60, 59]);
  });

  it("with wrong tokens are counted across all gateways", async () => {
    for (let i = 0; i < 60; i++) expect((await from("192.0.2.4", `ik_here${i}`)).status).toBe(401);
    expect((await from("192.0.2.4", "ik_there", other)).status).toBe(429);
  });

  it("are counted in the memory of each gateway while Redis is down", async () => {
    await using alone = await createTestApi({ callers: { apiRequestsPerMinute: 2 } });
    const call = alone.as(await alone.keyWith("*"));
    const answers = [];
    for (let i = 0; i < 3; i++) answers.push(await call("GET", "/blueprints"));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(answers.map((answer) => limitsOf(answer).slice(0, 2))).toEqual([
      [2, 1],
      [2, 0],
      [2, 0],
    ]);
  });

  it("do not count as wrong tokens if the token lookup fails", async () => {
    await other.database.db.schema.alterTable("accounts").renameTo("elsewhere").execute();
    const answer = await other.call("GET", "/blueprints");
    await other.database.db.schema.alterTable("elsewhere").renameTo("accounts").execute();
    expect(answer.status).toBe(500);
    expect(limitsOf(answer)).toEqual([60, 60, 60]);
  });
});
