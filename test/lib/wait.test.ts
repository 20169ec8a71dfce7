import { expect, it } from "vitest";
import { UnavailableError } from "../../src/lib/errors.ts";
import { endsWithin, sleep } from "../../src/lib/sleep.ts";
import { unlessAborted, withinGrace, withTimeout } from "../../src/lib/wait.ts";

const NEVER_MS = 3_600_000;
const never = new Promise<never>(() => {});

it("sleep resolves early if the signal aborts, and immediately if the signal is already aborted", async () => {
  const canceling = new AbortController();
  const sleeping = sleep(Number.POSITIVE_INFINITY, canceling.signal);
  canceling.abort();
  await sleeping;
  await sleep(NEVER_MS, canceling.signal);
});

it("withTimeout rejects with UnavailableError if the work exceeds the timeout, and otherwise returns the result", async () => {
  await expect(withTimeout(1, never, "too slow")).rejects.toEqual(new UnavailableError("too slow"));
  expect(await withTimeout(NEVER_MS, Promise.resolve(1), "too slow")).toBe(1);
  await expect(withTimeout(NEVER_MS, Promise.reject(new Error("broken")), "")).rejects.toThrow("broken");
});

it("endsWithin resolves with whether the work ended in time, and rejects if the work rejects", async () => {
  expect(await endsWithin(1, never)).toBe(false);
  expect(await endsWithin(NEVER_MS, Promise.resolve())).toBe(true);
  await expect(endsWithin(NEVER_MS, Promise.reject(new Error("broken")))).rejects.toThrow("broken");
});

it("unlessAborted rejects with the signal's reason if the signal aborts or is already aborted", async () => {
  const canceling = new AbortController();
  const waiting = unlessAborted(canceling.signal, never);
  canceling.abort(new Error("left"));
  await expect(waiting).rejects.toThrow("left");
  await expect(unlessAborted(canceling.signal, Promise.resolve(1))).rejects.toThrow("left");
  expect(await unlessAborted(new AbortController().signal, Promise.resolve(1))).toBe(1);
});

it("withinGrace resolves with undefined if the work does not end within the grace period after an abort", async () => {
  const canceling = new AbortController();
  expect(await withinGrace(1, Promise.resolve(1), canceling.signal)).toBe(1);
  const abandoned = withinGrace(1, never, canceling.signal);
  canceling.abort();
  expect(await abandoned).toBeUndefined();
  expect(await withinGrace(NEVER_MS, Promise.resolve(2), canceling.signal)).toBe(2);
});
