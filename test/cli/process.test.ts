import { expect, it, vi } from "vitest";
import { complain } from "../../src/cli/process.ts";

it("complain() prints an error and all causes of the error on one line", () => {
  const written: string[] = [];
  vi.spyOn(process.stderr, "write").mockImplementation((text) => written.push(String(text)) > 0);
  const tried = ["::1", "127.0.0.1"].map((address) => new Error(`connect ECONNREFUSED ${address}`));
  complain("Inlet does not start", new Error("the port is taken", { cause: new Error("listen EADDRINUSE") }));
  complain("Inlet does not start", new Error("no database", { cause: new AggregateError(tried) }));
  expect(written).toEqual([
    "Inlet does not start: the port is taken: listen EADDRINUSE\n",
    "Inlet does not start: no database: connect ECONNREFUSED ::1, connect ECONNREFUSED 127.0.0.1\n",
  ]);
});
