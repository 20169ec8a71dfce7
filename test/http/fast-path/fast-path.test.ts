import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type Listener, startListener } from "../../../src/gateway/listener.ts";
import type { Incoming, Outgoing } from "../../../src/http/context.ts";
import { createFastPath } from "../../../src/http/fast-path/fast-path.ts";
import { WholeReply } from "../../../src/http/fast-path/whole-reply.ts";
import { WholeRequest } from "../../../src/http/fast-path/whole-request.ts";
import { until } from "../../support/until.ts";

/** A request that was handed over, to be answered by the test. */
interface Arrived {
  readonly url: string | undefined;
  readonly body: string;
  readonly byNode: boolean;
  readonly outgoing: Outgoing;
  readonly answer: (text: string, headers?: Readonly<Record<string, string>>) => void;
}

let ending = new AsyncDisposableStack();
let arrived: Arrived[] = [];
afterEach(async () => {
  await ending.disposeAsync();
  vi.useRealTimers();
  ending = new AsyncDisposableStack();
  arrived = [];
});

/** Takes all but `/other`, and answers nothing. */
const take = (incoming: Incoming, outgoing: Outgoing): boolean => {
  if (incoming.url === "/other") return false;
  const byNode = !(incoming instanceof WholeRequest);
  const hand = (body: Buffer): void => {
    const answer: Arrived["answer"] = (text, headers = {}) => {
      const length = String(Buffer.byteLength(text));
      if (outgoing instanceof WholeReply) outgoing.send(200, `content-length: ${length}\r\n`, headers, text);
      else outgoing.writeHead(200, { "content-length": length, ...headers }).end(text);
    };
    arrived.push({ url: incoming.url, body: body.toString(), byNode, outgoing, answer });
  };
  if (!byNode) hand(incoming.read());
  else
    incoming.toArray().then(
      (pieces: Buffer[]) => hand(Buffer.concat(pieces)),
      () => {},
    );
  return true;
};

async function start(): Promise<{ readonly listener: Listener; readonly stop: () => Promise<void> }> {
  const fetchOther = () => new Response("other");
  const listener = ending.use(await startListener({ host: "127.0.0.1", port: 0 }, fetchOther));
  const serving = listener.serve({ fetch: fetchOther, answerDirectly: take });
  return { listener, stop: async () => serving[Symbol.asyncDispose]() };
}

/** Without a Node that takes what is left to it. Its clock is the test's. */
async function startAlone() {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const left: { readonly socket: Socket; read: string }[] = [];
  const leaveToNode = (socket: Socket): void => {
    const one = { socket, read: "" };
    socket.on("data", (bytes) => {
      one.read += bytes;
    });
    left.push(one);
  };
  const fastPath = createFastPath({ answer: take, leaveToNode, firstRequestMs: 20_000, keepAliveMs: 75_000 });
  const server = createServer({ allowHalfOpen: true }, fastPath.take).listen(0, "127.0.0.1");
  ending.defer(() => {
    fastPath.closeAll();
    for (const { socket } of left) socket.destroy();
    server.close();
  });
  await once(server, "listening");
  const openHere = async (): Promise<Sender & { readonly hasCome: () => boolean }> => {
    const taken = once(server, "connection");
    const sender = await open((server.address() as AddressInfo).port);
    const [socket] = await taken;
    return { ...sender, hasCome: () => socket.bytesRead > 0 };
  };
  return { open: openHere, left };
}

interface Sender {
  readonly socket: Socket;
  /** All that it was answered so far. */
  readonly answered: () => string;
  readonly hasEnded: () => boolean;
}

async function open(port: number): Promise<Sender> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
  ending.defer(() => void socket.destroy());
  let text = "";
  let hasEnded = false;
  socket.setEncoding("utf8").on("error", () => {});
  socket.on("data", (piece) => {
    text += piece;
  });
  for (const event of ["end", "close"]) socket.on(event, () => (hasEnded = true));
  await once(socket, "connect");
  return { socket, answered: () => text, hasEnded: () => hasEnded };
}

const request = (body: string, path = "/a", more = ""): string =>
  `POST ${path} HTTP/1.1\r\nHost: a.example\r\n${more}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const nth = async (count: number): Promise<Arrived> => {
  await until(() => arrived.length >= count);
  return arrived[count - 1] as Arrived;
};
const answersIn = (text: string): number => text.split("HTTP/1.1 ").length - 1;

describe("a connection", () => {
  it("takes one whole request after the other", async () => {
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

  it("is answered as Node answers", async () => {
    const { listener } = await start();
    const answers: string[] = [];
    for (const more of ["", "X-Name: \u00e9\r\n"]) {
      const { socket, answered } = await open(listener.port);
      socket.write(request("body", "/a", more), "latin1");
      (await nth(answers.length + 1)).answer("done", { "x-a": "b" });
      await until(() => answered().endsWith("done"));
      answers.push(answered().replace(/Date: [^\r]{29}\r\n/, "Date: then\r\n"));
    }
    expect(arrived.map(({ byNode }) => byNode)).toEqual([false, true]);
    expect(answers[0]).toContain("Keep-Alive: timeout=75\r\n");
    expect(answers[1]).toBe(answers[0]);
  });

  it("takes a request whose body comes behind its head, in pieces", async () => {
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

  it("goes to Node with what has come, where the rest does not come soon", async () => {
    const { open, left } = await startAlone();
    const { socket, hasCome } = await open();
    const text = request("0123456789").slice(0, -5);
    socket.write(text);
    await until(hasCome);
    vi.advanceTimersByTime(1_000);
    expect(left).toEqual([]);
    vi.advanceTimersByTime(1_000);
    await until(() => left[0]?.read === text);
    expect(arrived).toEqual([]);
  });

  it("goes to Node with a request that comes in very many pieces", async () => {
    const { listener } = await start();
    const { socket } = await open(listener.port);
    const body = "b".repeat(100);
    socket.write(request(body).slice(0, -100));
    for (const letter of body) {
      socket.write(letter);
      await new Promise(setImmediate);
    }
    const first = await nth(1);
    expect(first).toMatchObject({ body });
    first.answer("done");
  });

  it("goes to Node with a body that no socket reads at once", async () => {
    const { listener } = await start();
    const { socket } = await open(listener.port);
    const body = "b".repeat(99_000);
    socket.write(request(body));
    const first = await nth(1);
    expect(first).toMatchObject({ body, byNode: true });
    first.answer("done");
  });

  it("goes to Node with a request that is not plain, and stays there", async () => {
    const { listener } = await start();
    const { socket, answered } = await open(listener.port);
    socket.write(request("one"));
    (await nth(1)).answer("1");
    await until(() => answersIn(answered()) === 1);
    socket.write(
      "POST /b HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n",
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

  it("goes to Node with a request that is nobody's here", async () => {
    const { listener } = await start();
    const { socket, answered } = await open(listener.port);
    socket.write(request("body", "/other"));
    await until(() => answered().endsWith("other"));
    expect(arrived).toEqual([]);
  });

  it("is refused by Node what is no request", async () => {
    const { listener } = await start();
    const { socket, answered, hasEnded } = await open(listener.port);
    socket.write("this is no request\r\n\r\n");
    await until(hasEnded);
    expect(answered()).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe("requests that do not wait for answers", () => {
  it("are answered in their order, one after the other", async () => {
    const { listener } = await start();
    const { socket, answered } = await open(listener.port);
    socket.write(request("one"));
    const first = await nth(1);
    // Both behind it: they come together.
    socket.write(request("two", "/b") + request("three", "/c"));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(arrived.length).toBe(1);
    first.answer("1st");
    const second = await nth(2);
    const third = await nth(3);
    third.answer("3rd");
    second.answer("2nd");
    await until(() => answersIn(answered()) === 3);
    expect(answered().match(/\d(?:st|nd|rd)/g)).toEqual(["1st", "2nd", "3rd"]);
    expect(arrived.map(({ body }) => body)).toEqual(["one", "two", "three"]);
  });

  it("are not read on and on while one is answered", async () => {
    const { listener } = await start();
    const { socket, answered } = await open(listener.port);
    socket.write(request("one"));
    const first = await nth(1);
    const many = 2_000;
    const body = "b".repeat(32 * 1024);
    for (let i = 0; i < many; i++) socket.write(request(body));
    await new Promise((resolve) => setTimeout(resolve, 200));
    // The kernel holds some of it.
    expect(socket.writableLength).toBeGreaterThan((many * body.length) / 2);
    first.answer("1");
    for (let count = 2; count <= 20; count++) (await nth(count)).answer(String(count));
    await until(() => answersIn(answered()) >= 20);
  });
});

describe("a sender that", () => {
  it("sends no more, but listens, gets its answer", async () => {
    const { listener } = await start();
    const { socket, answered, hasEnded } = await open(listener.port);
    socket.end(request("body"));
    (await nth(1)).answer("done");
    await until(hasEnded);
    expect(answered()).toMatch(/done$/);
  });

  it("wants no more answers gets its answer as the last one, whatever it sends behind it", async () => {
    const { listener } = await start();
    const { socket, answered, hasEnded } = await open(listener.port);
    socket.write(request("body", "/a", "Connection: close\r\n"));
    const first = await nth(1);
    socket.write(request("another"));
    first.answer("done");
    await until(hasEnded);
    expect(answered()).toMatch(/Connection: close\r\n\r\ndone$/);
    expect(arrived.length).toBe(1);
  });

  it("ends in the middle of a request is told so", async () => {
    const { listener } = await start();
    const { socket, answered, hasEnded } = await open(listener.port);
    socket.end(request("body").slice(0, -1));
    await until(hasEnded);
    expect(answered()).toMatch(/^HTTP\/1\.1 400 /);
    expect(arrived).toEqual([]);
  });

  it("has gone harms nobody", async () => {
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

describe("an answer", () => {
  it("takes no header that would end its line", async () => {
    const { listener } = await start();
    const { socket } = await open(listener.port);
    socket.write(request("body"));
    const { outgoing, answer } = await nth(1);
    expect(() => answer("", { "x-a": "b\r\nx-c: d" })).toThrow(/Invalid character/);
    expect(() => answer("", { "x a": "b" })).toThrow(/valid HTTP token/);
    expect(outgoing.headersSent).toBe(false);
    answer("done");
  });

  it("that cannot be given ends its connection", async () => {
    const { listener } = await start();
    const { socket, answered, hasEnded } = await open(listener.port);
    socket.write(request("body"));
    (await nth(1)).outgoing.destroy();
    await until(hasEnded);
    expect(answered()).toBe("");
  });
});

describe("a listener that drains", () => {
  it("answers what is under way, as the last of its connection, and ends those that rest", async () => {
    const { listener, stop } = await start();
    const [busy, resting, silent] = [
      await open(listener.port),
      await open(listener.port),
      await open(listener.port),
    ];
    resting.socket.write(request("first"));
    (await nth(1)).answer("1");
    await until(() => resting.answered().endsWith("1"));
    busy.socket.write(request("second"));
    const second = await nth(2);
    const stopped = stop();
    await until(() => resting.hasEnded() && silent.hasEnded());
    expect(busy.hasEnded()).toBe(false);
    second.answer("2");
    await stopped;
    await until(busy.hasEnded);
    expect(busy.answered()).toContain("Connection: close\r\n");
    expect(busy.answered()).toMatch(/2$/);
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
