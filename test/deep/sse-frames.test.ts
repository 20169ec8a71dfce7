import { describe, it } from "vitest";
import { readsCutStreams, readsStreamsByteByByte } from "../channels/sse/frames-support.ts";

const RUNS = Number(process.env.FRAME_RUNS ?? 50_000);

describe("an event stream", () => {
  it("is read as the standard reads it, wherever it is cut", () => readsCutStreams(RUNS));

  it("is read as the standard reads it, byte by byte", () => readsStreamsByteByByte(RUNS / 5));
});
