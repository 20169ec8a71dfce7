import { expect, it } from "vitest";
import { encodeQuarantine } from "../../../src/bus/quarantine/quarantine-record.ts";
import { testChannel } from "../support.ts";

it("the body of a quarantined delivery is sent to Redis as bytes, without a copy as text", () => {
  const body = Buffer.alloc(1024 * 1024, "x");
  const { args } = encodeQuarantine(
    testChannel(),
    {
      delivery: { method: "POST", headers: {}, query: {}, body, arrivedAtMs: 0 },
      items: [{ failure: { item: null, reason: "no_match", detail: "", definitions: [] }, keep: "all" }],
    },
    () => "qr_1",
  );
  expect(args.filter((arg) => arg === body)).toHaveLength(1);
  expect(args.filter((arg) => typeof arg === "string" && arg.length >= body.length)).toEqual([]);
});
