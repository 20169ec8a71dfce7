import { expect, it } from "vitest";
import { batched } from "../../src/lib/batched.ts";

/** Lookups that the test resolves explicitly. */
function createLookups(options: { readonly maxKeys: number; readonly maxCalls: number }) {
  const calls: { readonly keys: readonly number[]; readonly complete: (error?: Error) => void }[] = [];
  const find = batched<number, string>((keys) => {
    const { promise, resolve, reject } = Promise.withResolvers<ReadonlyMap<number, string>>();
    const even = keys.filter((key) => key % 2 === 0);
    calls.push({
      keys,
      complete: (error) => (error ? reject(error) : resolve(new Map(even.map((key) => [key, `of ${key}`])))),
    });
    return promise;
  }, options);
  return { calls, find };
}

const nextTurn = (): Promise<void> => new Promise(setImmediate);

it("the lookup batcher looks up all keys of one event loop iteration in a single call, without duplicates", async () => {
  const { calls, find } = createLookups({ maxKeys: 100, maxCalls: 1 });
  const found = [find(2), find(3), find(2)];
  await nextTurn();
  expect(calls.map(({ keys }) => keys)).toEqual([[2, 3]]);
  calls[0]?.complete();
  expect(await Promise.all(found)).toEqual(["of 2", undefined, "of 2"]);
});

it("the lookup batcher queues keys while the maximum number of calls is in flight, and splits large batches", async () => {
  const { calls, find } = createLookups({ maxKeys: 2, maxCalls: 1 });
  void find(0);
  await nextTurn();
  const later = [find(2), find(4), find(6)];
  await nextTurn();
  expect(calls).toHaveLength(1);
  calls[0]?.complete();
  await nextTurn();
  await nextTurn();
  calls[1]?.complete();
  await nextTurn();
  await nextTurn();
  calls[2]?.complete();
  expect(await Promise.all(later)).toEqual(["of 2", "of 4", "of 6"]);
  expect(calls.map(({ keys }) => keys)).toEqual([[0], [2, 4], [6]]);
});

it("the lookup batcher looks up a key again if the key is requested while an older lookup of it is in flight", async () => {
  const { calls, find } = createLookups({ maxKeys: 10, maxCalls: 2 });
  void find(2);
  await nextTurn();
  void find(2);
  await nextTurn();
  expect(calls.map(({ keys }) => keys)).toEqual([[2], [2]]);
});

it("the lookup batcher rejects only the lookups whose call failed", async () => {
  const { calls, find } = createLookups({ maxKeys: 10, maxCalls: 1 });
  const failed = find(2);
  await nextTurn();
  const other = find(4);
  calls[0]?.complete(new Error("away"));
  await expect(failed).rejects.toThrow("away");
  await nextTurn();
  await nextTurn();
  calls[1]?.complete();
  expect(await other).toBe("of 4");
});
