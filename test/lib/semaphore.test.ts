import { expect, it } from "vitest";
import { createSemaphore } from "../../src/lib/semaphore.ts";

const { signal } = new AbortController();

it("a semaphore lets as many in as it has places, and the others in order of arrival", async () => {
  const places = createSemaphore(2);
  const order: number[] = [];
  const enter = async (n: number): Promise<Disposable> => {
    const place = await places.acquire({ signal });
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

it("a place whose waiter was aborted goes to the next one", async () => {
  const places = createSemaphore(1);
  const first = await places.acquire({ signal });
  const leaving = new AbortController();
  const left = places.acquire({ signal: leaving.signal });
  const next = places.acquire({ signal });
  leaving.abort();
  first[Symbol.dispose]();
  await expect(left).rejects.toThrow("aborted");
  (await next)[Symbol.dispose]();
  (await places.acquire({ signal }))[Symbol.dispose]();
});
