import { describe, it } from "vitest";
import {
  parsesAsTheClientDoes,
  parsesCutStreams,
  parsesStreamsByteByByte,
} from "../channels/sse/event-stream-support.ts";

const RUNS = Number(process.env.FRAME_RUNS ?? 50_000);

describe("an event stream", () => {
  it("is parsed as the standard specifies, at whichever byte it is split", () => parsesCutStreams(RUNS));

  it("is parsed as the standard specifies, even byte by byte", () => parsesStreamsByteByByte(RUNS / 5));

  it("is parsed in the same way as by the eventsource package", () => parsesAsTheClientDoes(RUNS / 25));
});
