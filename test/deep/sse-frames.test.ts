import { describe, it } from "vitest";
import {
  parsesAsTheClientDoes,
  parsesCutStreams,
  parsesStreamsByteByByte,
} from "../channels/sse/event-stream-support.ts";

const RUNS = Number(process.env.FRAME_RUNS ?? 50_000);

describe("the parser of event streams", () => {
  it("follows the WHATWG standard when the stream arrives in two chunks, wherever it is split", () =>
    parsesCutStreams(RUNS));

  it("follows the WHATWG standard when the stream arrives byte by byte", () =>
    parsesStreamsByteByByte(RUNS / 5));

  it("returns the same events as the eventsource package", () => parsesAsTheClientDoes(RUNS / 25));
});
