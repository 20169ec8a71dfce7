import { once } from "node:events";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { ReceiveHook } from "../../../src/http/hook-exchange.ts";
import { until } from "../../support/until.ts";
import { answersIn, arrived, endAll, nth, open, request, start, startAlone } from "./fast-path-support.ts";

afterEach(endAll);

describe("a connection on the fast path (own HTTP parser)", () => {
  it("processes several requests one after the other", async () => {
    const { listener } = await start();
    const { socket, answered } = await open(listener.port);
    for (const count of [1, 2, 3]) {
      socket.write(request(`body ${count}`));
      const { body, byNode, answer } = await nth(count);
      expect({ body, byNode }).toEqual({ body: `body ${count}`, byNode: false });
      answer(`answer ${count}, é`);
      await until(() => answered().endsWith(`answer ${count}, é`));
    }
  });

  it("receives the same response bytes as a connection on node:http", async () => {
    const { listener } = await start();
    const answers: string[] = [];
    for (const more of ["", "X-Name: \u00e9\r\n"]) {
      const { socket, answered } = await open(listener.port);
      socket.write(request("body", "/hooks/a", more), "latin1");
      (await nth(answers.length + 1)).answer("done", { "x-a": "b" });
      await until(() => answered().endsWith("done"));
      answers.push(answered().replace(/Date: [^\r]{29}\r\n/, "Date: then\r\n"));
    }
    expect(arrived.map(({ byNode }) => byNode)).toEqual([false, true]);
    expect(answers[0]).toContain("Keep-Alive: timeout=75\r\n");
    expect(answers[1]).toBe(answers[0]);
  });

  it("accepts a request whose body arrives in several pieces", async () => {
    const { listener } = await start();
    const { socket } = await open(listener.port);
    const text = request("abc");
    socket.write(text.slice(0, -3));
    for (const letter of "abc") {
      await new Promise((resolve) => setTimeout(resolve, 20));
      socket.write(letter);
    }
    const first = await nth(1);
    expect(first).toMatchObject({ body: "abc", byNode: false });
    first.answer("done");
  });

  it("is handed off to node:http if the rest of a request does not arrive within two seconds", async () => {
    const { open, left } = await startAlone();
    const { socket, received } = await open();
    const text = request("0123456789").slice(0, -5);
    socket.write(text);
    await until(() => received() === text.length);
    vi.advanceTimersByTime(1_000);
    expect(left).toEqual([]);
    vi.advanceTimersByTime(1_000);
    await until(() => left[0]?.read === text);
    expect(arrived).toEqual([]);
  });

  it("is handed off to node:http if a request arrives in too many pieces", async () => {
    const { open, left } = await startAlone();
    const { socket, received } = await open();
    const text = request("b".repeat(100)).slice(0, -30);
    socket.write(text.slice(0, -63));
    for (let sent = text.length - 63; sent < text.length; sent++) {
      await until(() => received() === sent);
      expect(left).toEqual([]);
      socket.write(text.charAt(sent));
    }
    await until(() => left[0]?.read === text);
  });

  it("is handed off to node:http if incomplete requests of all connections exceed the memory limit", async () => {
    const { open, left } = await startAlone();
    const text = request("b".repeat(60_000)).slice(0, -1);
    const most = Math.floor((16 * 1024 * 1024) / (text.length + 1));
    const others = await Promise.all(Array.from({ length: most }, open));
    for (const { socket } of others) socket.write(text.slice(0, 2_000));
    await until(() => others.every(({ received }) => received() === 2_000));
    expect(left).toEqual([]);
    const { socket } = await open();
    socket.write(text.slice(0, 2_000));
    await until(() => left[0]?.read === text.slice(0, 2_000));
    // Closed connections free their part of the limit.
    others[0]?.socket.destroy();
    (await nth(1)).answer("nobody listens");
    await until(() => others[0]?.hasClosed() === true);
    const another = await open();
    another.socket.write(text.slice(0, 2_000));
    await until(() => another.received() === 2_000);
    expect(left.length).toBe(1);
  });

  it("accepts a body that is larger than one socket read", async () => {
    const { listener } = await start();
    const { socket } = await open(listener.port);
    const body = "b".repeat(99_000);
    socket.write(request(body));
    const first = await nth(1);
    expect(first).toMatchObject({ body, byNode: false });
    first.answer("done");
  });

  it("responds before the body has arrived if the request head is rejected, and then discards the body", async () => {
    const { open, left } = await startAlone();
    const { socket, answered, received, hasClosed } = await open();
    socket.write(request("b".repeat(99_000), "/hooks/unread").slice(0, 500));
    const first = await nth(1);
    expect(first).toMatchObject({ body: "", isCut: false });
    first.answer("too long");
    await until(() => answered().endsWith("too long"));
    expect(answered()).toContain("\r\nConnection: keep-alive\r\n");
    // A sender in the middle of its body may not have read the response yet, so the connection stays open for a moment.
    socket.write("b".repeat(50_000));
    await until(() => received() === 50_500);
    vi.advanceTimersByTime(1_000);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(hasClosed()).toBe(false);
    vi.advanceTimersByTime(1_000);
    await until(hasClosed);
    expect([left, arrived.length]).toEqual([[], 1]);
  });

  it("receives the next request after the body of a rejected request was discarded", async () => {
    const { open } = await startAlone();
    const { socket, answered } = await open();
    const text = request("b".repeat(99_000), "/hooks/unread");
    socket.write(text.slice(0, 500));
    (await nth(1)).answer("rejected");
    await until(() => answered().endsWith("rejected"));
    socket.write(text.slice(500, 80_000));
    socket.write(text.slice(80_000) + request("{}", "/hooks/next"));
    expect(await nth(2)).toMatchObject({ body: "{}" });
    arrived[1]?.answer("accepted");
    await until(() => answered().endsWith("accepted"));
    socket.destroy();
  });

  it("receives 408 if a long body does not arrive within 60 seconds", async () => {
    const { open } = await startAlone();
    const { socket, answered, received, hasEnded, hasClosed } = await open();
    const text = request("a".repeat(100_000)).slice(0, 50_000);
    socket.write(text);
    await until(() => received() === text.length);
    vi.advanceTimersByTime(60_000);
    expect(arrived).toEqual([]);
    vi.advanceTimersByTime(1_000);
    await until(hasEnded);
    expect(answered()).toMatch(
      /^HTTP\/1\.1 408 Request Timeout\r\n.*\r\nconnection: close\r\n\r\n\{"code":/s,
    );
    const { isCut, answer } = await nth(1);
    expect(isCut).toBe(true);
    answer("too late");
    vi.advanceTimersByTime(2_000);
    await until(hasClosed);
    expect(answered()).not.toContain("too late");
  });

  it("is closed after such a response as soon as its sender closes it", async () => {
    const { open } = await startAlone();
    const { socket, hasClosed } = await open();
    socket.write(request("b".repeat(99_000), "/hooks/unread").slice(0, 500));
    (await nth(1)).answer("too long");
    socket.end();
    await until(hasClosed);
  });

  it("stays on node:http after a chunked request, which the fast path cannot parse", async () => {
    const { listener } = await start();
    const { socket, answered } = await open(listener.port);
    socket.write(request("one"));
    (await nth(1)).answer("1");
    await until(() => answersIn(answered()) === 1);
    socket.write(
      "POST /hooks/b HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n",
    );
    (await nth(2)).answer("2");
    await until(() => answersIn(answered()) === 2);
    socket.write(request("three"));
    (await nth(3)).answer("3");
    await until(() => answersIn(answered()) === 3);
    expect(arrived.map(({ body, byNode }) => [body, byNode])).toEqual([
      ["one", false],
      ["two", true],
      ["three", true],
    ]);
  });

  it("is handed off to node:http if the request path is not a webhook path", async () => {
    const { listener } = await start();
    const { socket, answered } = await open(listener.port);
    socket.write(request("body", "/other"));
    await until(() => answered().endsWith("other"));
    expect(arrived).toEqual([]);
  });

  it("receives the 400 response of node:http for bytes that are not an HTTP request", async () => {
    const { listener } = await start();
    const { socket, answered, hasEnded } = await open(listener.port);
    socket.write("this is no request\r\n\r\n");
    await until(hasEnded);
    expect(answered()).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe("pipelined requests on the fast path", () => {
  it("are answered one at a time, in order", async () => {
    const { listener } = await start();
    const { socket, answered } = await open(listener.port);
    socket.write(request("one"));
    const first = await nth(1);
    // Both follow it in one piece.
    socket.write(request("two", "/hooks/b") + request("three", "/hooks/c"));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(arrived.length).toBe(1);
    first.answer("1st");
    (await nth(2)).answer("2nd");
    (await nth(3)).answer("3rd");
    await until(() => answersIn(answered()) === 3);
    expect(answered().match(/\d(?:st|nd|rd)/g)).toEqual(["1st", "2nd", "3rd"]);
    expect(arrived.map(({ body, byNode }) => [body, byNode])).toEqual([
      ["one", false],
      ["two", false],
      ["three", false],
    ]);
  });

  it("are answered in order even if one of them is handed off to node:http", async () => {
    const { listener } = await start();
    const { socket, answered } = await open(listener.port);
    socket.write(request("one"));
    const first = await nth(1);
    socket.write(
      request("two") + request("three", "/hooks/c", "X-Name: \u00e9\r\n") + request("four"),
      "latin1",
    );
    await new Promise((resolve) => setTimeout(resolve, 50));
    first.answer("1st");
    (await nth(2)).answer("2nd");
    (await nth(3)).answer("3rd");
    (await nth(4)).answer("4th");
    await until(() => answersIn(answered()) === 4);
    expect(answered().match(/\d(?:st|nd|rd|th)/g)).toEqual(["1st", "2nd", "3rd", "4th"]);
    expect(arrived.map(({ body, byNode }) => [body, byNode])).toEqual([
      ["one", false],
      ["two", false],
      ["three", true],
      ["four", true],
    ]);
  });

  it("are all processed even if the client then closes its side of the connection", async () => {
    const { listener } = await start();
    const { socket, answered, hasEnded } = await open(listener.port);
    socket.write(request("one"));
    const first = await nth(1);
    socket.end(request("two") + request("three").slice(0, -1));
    await new Promise((resolve) => setTimeout(resolve, 50));
    first.answer("1st");
    (await nth(2)).answer("2nd");
    const third = await nth(3);
    expect(third).toMatchObject({ body: "", isCut: true });
    third.answer("3rd");
    await until(hasEnded);
    expect(answered().match(/\d(?:st|nd|rd)/g)).toEqual(["1st", "2nd", "3rd"]);
  });

  it("are all processed after a handoff to node:http even if the client closes its side of the connection", async () => {
    const { listener } = await start();
    const { socket, answered, hasEnded } = await open(listener.port);
    socket.end(request("one") + request("two", "/other"));
    (await nth(1)).answer("1st");
    await until(hasEnded);
    expect(answered()).toContain("1st");
    expect(answered()).toMatch(/other$/);
  });

  it("can be answered synchronously, even 1,500 of them, without a stack overflow", async () => {
    const answerAtOnce: ReceiveHook = (_, exchange) => exchange.reply({ status: 200, headers: {} }, "req_1");
    const { open } = await startAlone(answerAtOnce);
    const { socket, answered } = await open();
    // All requests arrive in one piece.
    const many = 1_500;
    socket.write("POST /hooks/a HTTP/1.1\r\nHost:a\r\n\r\n".repeat(many));
    await until(() => answersIn(answered()) === many);
  });

  it("are buffered only up to a limit while a request is processed", async () => {
    const { listener } = await start();
    const { socket, answered } = await open(listener.port);
    socket.write(request("one"));
    const first = await nth(1);
    const many = 2_000;
    const body = "b".repeat(32 * 1024);
    for (let i = 0; i < many; i++) socket.write(request(body));
    await new Promise((resolve) => setTimeout(resolve, 200));
    // The kernel buffers a part of it.
    expect(socket.writableLength).toBeGreaterThan((many * body.length) / 2);
    first.answer("1");
    for (let count = 2; count <= 20; count++) (await nth(count)).answer(String(count));
    await until(() => answersIn(answered()) >= 20);
    const last = await nth(21);
    socket.resetAndDestroy();
    await once(socket, "close");
    last.answer("nobody listens");
  });
});

describe("a client of the fast path that", () => {
  it("closes its side of the connection after a request still receives the response", async () => {
    const { listener } = await start();
    const { socket, answered, hasEnded } = await open(listener.port);
    socket.end(request("body"));
    (await nth(1)).answer("done");
    await until(hasEnded);
    expect(answered()).toMatch(/done$/);
  });

  it("sends `Connection: close` receives no response to later requests on the connection", async () => {
    const { listener } = await start();
    const { socket, answered, hasEnded } = await open(listener.port);
    socket.write(request("body", "/hooks/a", "Connection: close\r\n"));
    const first = await nth(1);
    socket.write(request("another"));
    await new Promise((resolve) => setTimeout(resolve, 50));
    first.answer("done");
    await until(hasEnded);
    expect(answered()).toMatch(/Connection: close\r\n\r\ndone$/);
    expect(arrived.length).toBe(1);
  });

  it("closes its side of the connection in the middle of a request still receives a response", async () => {
    const { listener } = await start();
    const { socket, answered, hasEnded } = await open(listener.port);
    socket.end(request("body").slice(0, -1));
    const first = await nth(1);
    expect(first).toMatchObject({ body: "", isCut: true });
    first.answer("done");
    await until(hasEnded);
    expect(answered()).toMatch(/Connection: close\r\n\r\ndone$/);
  });

  it("disconnects in the middle of a request causes the handler to be called with an incomplete request", async () => {
    const { open } = await startAlone();
    const { socket, received, hasClosed } = await open();
    const text = request("body").slice(0, -1);
    socket.write(text);
    await until(() => received() === text.length);
    socket.resetAndDestroy();
    const first = await nth(1);
    expect(first).toMatchObject({ body: "", isCut: true, senderAddress: "127.0.0.1" });
    first.answer("nobody listens");
    await until(hasClosed);
  });

  it("disconnects before the response causes no error", async () => {
    const { listener } = await start();
    const gone = await open(listener.port);
    gone.socket.write(request("body"));
    const first = await nth(1);
    gone.socket.resetAndDestroy();
    const { socket, answered } = await open(listener.port);
    socket.write(request("another"));
    first.answer("nobody listens");
    (await nth(2)).answer("done");
    await until(() => answered().endsWith("done"));
  });
});

describe("a response on the fast path", () => {
  it("cannot contain a header with a line break", async () => {
    const { listener } = await start();
    const { socket } = await open(listener.port);
    socket.write(request("body"));
    const { exchange, answer } = await nth(1);
    expect(() => answer("", { "x-a": "b\r\nx-c: d" })).toThrow(/Invalid character/);
    expect(() => answer("", { "x a": "b" })).toThrow(/valid HTTP token/);
    expect(exchange.hasReplied).toBe(false);
    answer("done");
  });

  it("with `Connection: close` is the last response on the connection", async () => {
    const { listener } = await start();
    const answers: string[] = [];
    for (const more of ["", "X-Name: \u00e9\r\n"]) {
      const { socket, answered, hasEnded } = await open(listener.port);
      socket.write(request("body", "/hooks/a", more), "latin1");
      (await nth(answers.length + 1)).answer("done", { connection: "close" });
      await until(hasEnded);
      answers.push(answered().toLowerCase());
    }
    for (const text of answers) {
      expect(text.match(/^connection: .*$/gm)).toEqual(["connection: close"]);
      expect(text).toMatch(/done$/);
    }
  });

  it("has no body if its status is 204", async () => {
    const { listener } = await start();
    const { socket, answered } = await open(listener.port);
    socket.write(request("one") + request("two"));
    (await nth(1)).exchange.reply({ status: 204, headers: {}, body: "body" }, "req_1");
    (await nth(2)).answer("2nd");
    await until(() => answered().endsWith("2nd"));
    expect(answered()).toMatch(/^HTTP\/1\.1 204 No Content\r\n(?:[^\r]+\r\n)+\r\nHTTP\/1\.1 200 OK\r\n/);
  });

  it("that is aborted by the handler closes the connection", async () => {
    const { listener } = await start();
    const { socket, answered, hasEnded } = await open(listener.port);
    socket.write(request("body"));
    (await nth(1)).exchange.abort();
    await until(hasEnded);
    expect(answered()).toBe("");
  });

  it("reports that its exchange is closed, whether it was sent or its client disconnected", async () => {
    const { listener } = await start();
    const { socket, answered } = await open(listener.port);
    socket.write(request("one"));
    const first = await nth(1);
    let isClosed = false;
    const closed = first.exchange.closed().then(() => {
      isClosed = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(isClosed).toBe(false);
    first.answer("1");
    await closed;
    await until(() => answered().endsWith("1"));
    socket.write(request("two"));
    const second = await nth(2);
    socket.resetAndDestroy();
    await second.exchange.closed();
  });
});
