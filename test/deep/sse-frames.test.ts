import { describe, it } from "vitest";
import {
  parsesAsTheClientDoes,
  parsesCutStreams,
  parsesStreamsByteByByte,
} from "../channels/sse/event-stream-support.ts";

const RUNS = Number(process.env.FRAME_RUNS ?? 50_000);

describe("an event stream", () => {
  it("is parsed as the standard says, wherever it is cut", () => parsesCutStreams(RUNS));

  it("is parsed as the standard says, byte by byte", () => parsesStreamsByteByByte(RUNS / 5));

  it("is parsed as the client of the eventsource package does", () => parsesAsTheClientDoes(RUNS / 25));
});
