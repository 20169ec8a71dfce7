import { describe, it } from "vitest";
import {
  parsesAsTheClientDoes,
  parsesCutStreams,
  parsesStreamsByteByByte,
} from "../channels/sse/event-stream-support.ts";

const RUNS = Number(process.env.FRAME_RUNS ?? 50_000);

describe("an event stream", () => {
  it("is parsed as the standard says, at whatever byte it is split", () => parsesCutStreams(RUNS));

  it("is parsed as the standard says, byte by byte", () => parsesStreamsByteByByte(RUNS / 5));

  it("is parsed as by the client of the eventsource package", () => parsesAsTheClientDoes(RUNS / 25));
});
