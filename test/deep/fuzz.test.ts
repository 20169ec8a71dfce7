import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  fuzz,
  fuzzWithTraffic,
  report,
  targetAt,
  targetIn,
  watchRejections,
} from "../conformance/fuzzing.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { startTestSpine, type TestSpine } from "../support/spine.ts";

// About ten thousand requests: forty per operation in process and seven through a socket.
let rejections: ReturnType<typeof watchRejections>;
beforeAll(() => {
  rejections = watchRejections();
});
afterAll(() => rejections[Symbol.dispose]());

describe("thousands of random requests passed to the API without a network connection", () => {
  let spine: TestSpine;
  beforeAll(async () => {
    spine = await startTestSpine();
  });
  afterAll(() => spine?.[Symbol.asyncDispose]());

  it("only get responses that the OpenAPI document describes, and never a 5xx", async () => {
    const tally = await fuzz(await targetIn(spine), { drafts: 40 });
    report("in process", tally);
    expect(tally.findings).toEqual([]);
    expect(tally.requests).toBeGreaterThan(8_000);
    expect(rejections.seen).toEqual([]);
  });
});

describe("thousands of random requests to a running gateway", () => {
  let dir: string;
  let gateway: GatewayProcess;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "inlet-fuzz-"));
    gateway = await startGatewayProcess({ INLET_DATA_DIR: join(dir, "data") });
  });
  afterAll(async () => {
    await gateway?.[Symbol.asyncDispose]();
    await rm(dir, { recursive: true, force: true });
  });

  it("only get API responses that the OpenAPI document describes, and never a 5xx", async () => {
    const tally = await fuzz(await targetAt(gateway.origin), { drafts: 7 });
    report("through a socket", tally);
    expect(tally.findings).toEqual([]);
    expect(tally.requests).toBeGreaterThan(1_400);
  });

  it("get no 5xx from webhook addresses and other paths outside the API", async () => {
    report("outside the API", await fuzzWithTraffic(gateway, 500));
  });

  it("leave a gateway that has no error in its log and exits with code 0 at SIGTERM", async () => {
    gateway.kill("SIGTERM");
    expect(await gateway.exited).toBe(0);
    expect(gateway.output()).not.toMatch(/"level":(?:50|60|"error"|"fatal")|unhandled/i);
  });
});
