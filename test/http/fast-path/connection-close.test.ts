import { afterEach, describe, expect, it, vi } from "vitest";
import { until } from "../../support/until.ts";
import { answersIn, arrived, endAll, nth, open, request, start, startAlone } from "./fast-path-support.ts";

afterEach(endAll);

describe("a listener that drains", () => {
  it("answers what is under way, as the last of its connection, and ends those that rest", async () => {
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

  it("answers what is still to come, or to become whole, on connections that were there", async () => {
    const { listener, stop } = await start();
    const silent = await open(listener.port);
    const slow = await open(listener.port);
    const resting = await open(listener.port);
    slow.socket.write(request("slow").slice(0, -2));
    // All three are there before it.
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

describe("a long answer", () => {
  const LONG = "a".repeat(20_000_000);

  it("is sent whole while its listener drains, however late it is read", async () => {
    const { listener, stop } = await start();
    const { socket, answered, hasEnded } = await open(listener.port);
    socket.write(request("body"));
    const first = await nth(1);
    socket.pause();
    const stopped = stop();
    first.answer(LONG);
    // The listener looks for what rests every 25 ms.
    await new Promise((resolve) => setTimeout(resolve, 200));
    socket.resume();
    await stopped;
    await until(hasEnded);
    expect(answered().split("\r\n\r\n")[1]?.length).toBe(LONG.length);
  });

  it("that was given, and has not left yet, is sent whole", async () => {
    const { open, closeIdle } = await startAlone();
    const { socket, answered, hasEnded, unsent } = await open();
    socket.pause();
    // No more than a socket keeps without a word.
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

  it("that nobody reads ends its connection after seventy-five seconds", async () => {
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

describe("a connection that says nothing", () => {
  it("is ended after twenty seconds where it is new, after seventy-five where it was answered", async () => {
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

  it("is left alone while its request is under way", async () => {
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
