import { afterEach, describe, expect, it, vi } from "vitest";
import { until } from "../../support/until.ts";
import { answersIn, arrived, endAll, nth, open, request, start, startAlone } from "./fast-path-support.ts";

afterEach(endAll);

describe("draining an HTTP listener", () => {
  it("closes idle connections at once, and connections with a request in flight after the response", async () => {
    const { listener, stop } = await start();
    const busy = await open(listener.port);
    const resting = await open(listener.port);
    resting.socket.write(request("first"));
    (await nth(1)).answer("1");
    await until(() => resting.answered().endsWith("1"));
    busy.socket.write(request("second"));
    const second = await nth(2);
    const stopped = stop();
    await until(resting.hasEnded);
    expect(busy.hasEnded()).toBe(false);
    second.answer("2");
    await stopped;
    await until(busy.hasEnded);
    expect(busy.answered()).toContain("Connection: close\r\n");
    expect(busy.answered()).toMatch(/2$/);
  });

  it("also completes requests that arrive on open connections after the drain began", async () => {
    const { listener, stop } = await start();
    const silent = await open(listener.port);
    const slow = await open(listener.port);
    const resting = await open(listener.port);
    slow.socket.write(request("slow").slice(0, -2));
    // All three connections are open before the drain begins.
    resting.socket.write(request("first"));
    (await nth(1)).answer("1");
    await until(() => resting.answered().endsWith("1"));
    const stopped = stop();
    await until(resting.hasEnded);
    silent.socket.write(request("silent"));
    slow.socket.write("ow");
    await nth(3);
    for (const { body, answer } of arrived.slice(1)) answer(`${body} done`);
    await stopped;
    expect(silent.answered()).toMatch(/silent done$/);
    expect(slow.answered()).toMatch(/slow done$/);
  });
});

describe("a long response on the fast path", () => {
  const LONG = "a".repeat(20_000_000);

  it("is sent completely to a slow client while the listener drains", async () => {
    const { listener, stop } = await start();
    const { socket, answered, hasEnded } = await open(listener.port);
    socket.write(request("body"));
    const first = await nth(1);
    socket.pause();
    const stopped = stop();
    first.answer(LONG);
    // The listener checks for idle connections every 25 ms.
    await new Promise((resolve) => setTimeout(resolve, 200));
    socket.resume();
    await stopped;
    await until(hasEnded);
    expect(answered().split("\r\n\r\n")[1]?.length).toBe(LONG.length);
  });

  it("is sent completely if a part of it was still buffered when the drain began", async () => {
    const { open, closeIdle } = await startAlone();
    const { socket, answered, hasEnded, unsent } = await open();
    socket.pause();
    // Fits into the socket's buffers.
    const long = "a".repeat(30_000);
    let count = 0;
    while (unsent() === 0) {
      socket.write(request("body"));
      (await nth(++count)).answer(long);
    }
    closeIdle();
    socket.resume();
    await until(hasEnded);
    expect(answersIn(answered())).toBe(count);
    expect(answered().endsWith(long)).toBe(true);
  });

  it("is aborted after 75 seconds if the client does not read the response", async () => {
    const { open } = await startAlone();
    const { socket, hasClosed } = await open();
    socket.write(request("body"));
    const first = await nth(1);
    socket.pause();
    first.answer(LONG);
    vi.advanceTimersByTime(75_000);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(hasClosed()).toBe(false);
    vi.advanceTimersByTime(1_000);
    await until(hasClosed);
  });
});

describe("an idle connection on the fast path", () => {
  it("is closed after 20 seconds without a first request, or 75 seconds after a response", async () => {
    const { open, left } = await startAlone();
    const answered = await open();
    answered.socket.write(request("body"));
    (await nth(1)).answer("done");
    await until(() => answered.answered().endsWith("done"));
    const silent = await open();
    vi.advanceTimersByTime(20_000);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(silent.hasEnded()).toBe(false);
    vi.advanceTimersByTime(1_000);
    await until(silent.hasEnded);
    vi.advanceTimersByTime(54_000);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(answered.hasEnded()).toBe(false);
    vi.advanceTimersByTime(1_000);
    await until(answered.hasEnded);
    expect(left).toEqual([]);
  });

  it("stays open while a request is in flight", async () => {
    const { open } = await startAlone();
    const { socket, answered } = await open();
    socket.write(request("body"));
    const first = await nth(1);
    vi.advanceTimersByTime(200_000);
    first.answer("done");
    await until(() => answered().endsWith("done"));
    socket.write(request("another"));
    (await nth(2)).answer("2");
    await until(() => answered().endsWith("2"));
  });
});
