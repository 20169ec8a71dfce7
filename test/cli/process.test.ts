import { expect, it } from "vitest";
import { formatFailure } from "../../src/cli/process.ts";

it("formatFailure() returns an error and all causes of the error on one line", () => {
  const tried = ["::1", "127.0.0.1"].map((address) => new Error(`connect ECONNREFUSED ${address}`));
  const inUse = new Error("the port is taken", { cause: new Error("listen EADDRINUSE") });
  const unreachable = new Error("no database", { cause: new AggregateError(tried) });
  expect([inUse, unreachable].map((error) => formatFailure("Inlet did not start", error))).toEqual([
    "Inlet did not start: the port is taken: listen EADDRINUSE",
    "Inlet did not start: no database: connect ECONNREFUSED ::1, connect ECONNREFUSED 127.0.0.1",
  ]);
});
