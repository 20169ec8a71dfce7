import { expect, it } from "vitest";
import { FairLimiter } from "../../src/limits/fairness.ts";

const { signal } = new AbortController();
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

it("the limiter grants requests in order, and does not let a small request overtake a large one", async () => {
  const limiter = new FairLimiter(100);
  const granted: string[] = [];
  const take = async (name: string, bytes: number) => {
    const place = await limiter.acquire(bytes, { signal });
    granted.push(name);
    return place;
  };
  const [first, second] = await Promise.all([take("a", 60), take("b", 40)]);
  const large = take("large", 80);
  // It would fit, but the large request was made earlier.
  const small = take("small", 10);
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  await nextTurn();
  expect(granted).toEqual(["a", "b"]);
  second[Symbol.dispose]();
  await Promise.all([large, small]);
  expect(granted).toEqual(["a", "b", "large", "small"]);
});

it("the limiter serves owners round-robin, and the requests of each owner in order", async () => {
  const limiter = new FairLimiter(1);
  const granted: string[] = [];
  const use = async (name: string) => {
    using _ = await limiter.acquire(1, { signal, owner: name.slice(0, 1) });
    granted.push(name);
  };
  await Promise.all(["a1", "a2", "a3", "b1", "b2", "c1"].map(use));
  expect(granted).toEqual(["a1", "a2", "b1", "c1", "a3", "b2"]);
});

it("the limiter grants a request that exceeds the total when everything else is released", async () => {
  const limiter = new FairLimiter(100);
  const some = await limiter.acquire(1, { signal });
  const huge = limiter.acquire(1_000, { signal });
  const next = limiter.acquire(1, { signal });
  some[Symbol.dispose]();
  (await huge)[Symbol.dispose]();
  (await next)[Symbol.dispose]();
});

it("the limiter grants capacity to the next request when a holder shrinks its share", async () => {
  const limiter = new FairLimiter(10);
  const large = await limiter.acquire(9, { signal });
  let second: Disposable | undefined;
  void limiter.acquire(5, { signal }).then((held) => {
    second = held;
  });
  large.shrinkTo(6);
  await nextTurn();
  expect(second).toBeUndefined();
  large.shrinkTo(5);
  await nextTurn();
  expect(second).toBeDefined();
  large[Symbol.dispose]();
  second?.[Symbol.dispose]();
  await limiter.acquire(10, { signal });
});

it("the limiter grants the requests behind a large request when that request is aborted", async () => {
  const limiter = new FairLimiter(100);
  const some = await limiter.acquire(50, { signal });
  const canceling = new AbortController();
  const large = limiter.acquire(80, { signal: canceling.signal });
  const small = limiter.acquire(20, { signal });
  canceling.abort(new Error("no longer"));
  await expect(large).rejects.toThrow("no longer");
  await small;
  some[Symbol.dispose]();
  await expect(limiter.acquire(1, { signal: canceling.signal })).rejects.toThrow("no longer");
});

it("the limiter grants free slots immediately, and queues further requests in order of arrival", async () => {
  const places = new FairLimiter(2);
  const order: number[] = [];
  const enter = async (n: number): Promise<Disposable> => {
    const place = await places.acquire(1, { signal });
    order.push(n);
    return place;
  };
  const entered = [0, 1, 2, 3].map(enter);
  await Promise.all(entered.slice(0, 2));
  expect(order).toEqual([0, 1]);
  (await entered[1])?.[Symbol.dispose]();
  (await entered[2])?.[Symbol.dispose]();
  await entered[3];
  expect(order).toEqual([0, 1, 2, 3]);
});

it("the limiter skips a queued request that was aborted, and grants the slot to the next request", async () => {
  const places = new FairLimiter(1);
  const first = await places.acquire(1, { signal });
  const canceling = new AbortController();
  const canceled = places.acquire(1, { signal: canceling.signal });
  const next = places.acquire(1, { signal });
  canceling.abort();
  first[Symbol.dispose]();
  await expect(canceled).rejects.toThrow("aborted");
  (await next)[Symbol.dispose]();
  (await places.acquire(1, { signal }))[Symbol.dispose]();
});
