import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestStores, startTestGateway, type TestGateway } from "../support/gateway.ts";
import { startTestSpine, type TestSpine } from "../support/spine.ts";
import { fuzz, fuzzWithTraffic, report, targetAt, targetIn, watchRejections } from "./fuzzing.ts";

// A small sample with a new seed in each run. `test/deep/fuzz.test.ts` sends ten thousand requests.
let rejections: ReturnType<typeof watchRejections>;
beforeAll(() => {
  rejections = watchRejections();
});
afterAll(() => rejections[Symbol.dispose]());

describe("random requests passed to the API without a network connection", () => {
  let spine: TestSpine;
  beforeAll(async () => {
    spine = await startTestSpine();
  });
  afterAll(() => spine?.[Symbol.asyncDispose]());

  it("only get responses that the OpenAPI document describes, and never a 5xx", async () => {
    const tally = await fuzz(await targetIn(spine), { drafts: 1, operations: 60 });
    report("in process", tally);
    expect(tally.findings).toEqual([]);
    expect(tally.requests).toBeGreaterThanOrEqual(60);
    expect(rejections.seen).toEqual([]);
  });
});

describe("random requests to a running gateway", () => {
  const running = new AsyncDisposableStack();
  let gateway: TestGateway;
  beforeAll(async () => {
    const { env } = running.use(await createTestStores());
    gateway = running.use(await startTestGateway(env));
  });
  afterAll(() => running.disposeAsync());

  it("only get API responses that the OpenAPI document describes, and never a 5xx", async () => {
    const tally = await fuzz(await targetAt(gateway.origin), { drafts: 1, operations: 20 });
    report("through a socket", tally);
    expect(tally.findings).toEqual([]);
    expect(tally.requests).toBeGreaterThanOrEqual(20);
  });

  it("get no 5xx from webhook addresses and other paths outside the API", async () => {
    report("outside the API", await fuzzWithTraffic(gateway, 60));
  });

  it("cause neither an error in the log nor an unhandled rejection", () => {
    expect(gateway.lines.filter(({ level }) => level === "error" || level === "fatal")).toEqual([]);
    expect(rejections.seen).toEqual([]);
  });
});
