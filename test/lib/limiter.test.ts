import { expect, it } from "vitest";
import { createLimiter } from "../../src/lib/limiter.ts";

const { signal } = new AbortController();
const turn = () => new Promise((resolve) => setImmediate(resolve));

it("grants weights in request order", async () => {
  const limiter = createLimiter(100);
  const got: string[] = [];
  const take = async (name: string, bytes: number) => {
    const place = await limiter.acquire(bytes, { signal });
    got.push(name);
    return place;
  };
  const [first, second] = await Promise.all([take("a", 60), take("b", 40)]);
  const large = take("large", 80);
  // It would fit, but the large request is first.
  const small = take("small", 10);
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  await turn();
  expect(got).toEqual(["a", "b"]);
  second[Symbol.dispose]();
  await Promise.all([large, small]);
  expect(got).toEqual(["a", "b", "large", "small"]);
});

it("serves owners round-robin, and the requests of each owner in order", async () => {
  const limiter = createLimiter(1);
  const got: string[] = [];
  const use = async (name: string) => {
    using _ = await limiter.acquire(1, { signal, whose: name.slice(0, 1) });
    got.push(name);
  };
  await Promise.all(["a1", "a2", "a3", "b1", "b2", "c1"].map(use));
  expect(got).toEqual(["a1", "a2", "b1", "c1", "a3", "b2"]);
});

it("grants a request above the total when all other weight is released", async () => {
  const limiter = createLimiter(100);
  const some = await limiter.acquire(1, { signal });
  const huge = limiter.acquire(1_000, { signal });
  const behind = limiter.acquire(1, { signal });
  some[Symbol.dispose]();
  (await huge)[Symbol.dispose]();
  (await behind)[Symbol.dispose]();
});

it("grants weight that was released early to the next request", async () => {
  const limiter = createLimiter(10);
  const large = await limiter.acquire(9, { signal });
  let second: Disposable | undefined;
  void limiter.acquire(5, { signal }).then((held) => {
    second = held;
  });
  large.shrinkTo(6);
  await turn();
  expect(second).toBeUndefined();
  large.shrinkTo(5);
  await turn();
  expect(second).toBeDefined();
  large[Symbol.dispose]();
  second?.[Symbol.dispose]();
  await limiter.acquire(10, { signal });
});

it("grants the next requests after a request is aborted", async () => {
  const limiter = createLimiter(100);
  const some = await limiter.acquire(50, { signal });
  const leaving = new AbortController();
  const large = limiter.acquire(80, { signal: leaving.signal });
  const small = limiter.acquire(20, { signal });
  leaving.abort(new Error("no longer"));
  await expect(large).rejects.toThrow("no longer");
  await small;
  some[Symbol.dispose]();
  await expect(limiter.acquire(1, { signal: leaving.signal })).rejects.toThrow("no longer");
});

it("grants as many slots as available, and the others in order of arrival", async () => {
  const places = createLimiter(2);
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

it("grants a slot to the next request if its waiter was aborted", async () => {
  const places = createLimiter(1);
  const first = await places.acquire(1, { signal });
  const leaving = new AbortController();
  const left = places.acquire(1, { signal: leaving.signal });
  const next = places.acquire(1, { signal });
  leaving.abort();
  first[Symbol.dispose]();
  await expect(left).rejects.toThrow("aborted");
  (await next)[Symbol.dispose]();
  (await places.acquire(1, { signal }))[Symbol.dispose]();
});
