import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readHead } from "../../../src/http/fast-path/request.ts";

/** A request as parsed by Node. `undefined` if Node rejected it. */
interface Read {
  readonly method: string | undefined;
  readonly url: string | undefined;
  /** Sorted. */
  readonly headers: readonly string[];
  readonly body: string;
}

/** Converts text to bytes, one per character. */
const bytes = (text: string): Buffer => Buffer.from(text, "latin1");

let onRead: (read: Read | undefined) => void;
const server = createServer(async (request, response) => {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece);
  response.end();
  const { method, url, rawHeaders } = request;
  // `headers` omits `__proto__`.
  const headers = rawHeaders.flatMap((name, i) =>
    i % 2 === 0 ? [`${name.toLowerCase()}: ${rawHeaders[i + 1]}`] : [],
  );
  onRead({ method, url, headers: headers.sort(), body: Buffer.concat(pieces).toString("latin1") });
});
server.on("clientError", (_, socket) => {
  socket.destroy();
  onRead(undefined);
});
beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => {
  server.close();
});

/** Returns Node's result for these bytes, which contain at most one request. */
async function readByNode(text: string): Promise<Read | undefined> {
  const { promise, resolve } = Promise.withResolvers<Read | undefined>();
  onRead = resolve;
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => {});
  socket.end(bytes(text));
  const read = await promise;
  socket.destroy();
  return read;
}

const HOST = "Host: inlet.example";
const request = (lines: readonly string[], first = "POST /hooks/a HTTP/1.1"): string =>
  [first, ...lines, "", ""].join("\r\n");

describe("a request head on the fast path", () => {
  it("is parsed into channel id, target, headers and body length", () => {
    const text = request([
      HOST,
      "Content-Type: application/json",
      "X-Empty:",
      "x-spaced: \t a: b \t",
      "Content-Length: 17",
    ]);
    expect(readHead(bytes(`${text}{"a":"not a head"}`))).toEqual({
      method: "POST",
      channelId: "a",
      target: "/hooks/a",
      headers: {
        host: "inlet.example",
        "content-type": "application/json",
        "x-empty": "",
        "x-spaced": "a: b",
        "content-length": "17",
      },
      bytes: text.length,
      bodyBytes: 17,
      closes: false,
    });
  });

  it.each(["PUT", "PATCH", "GET", "DELETE"])("may have the method %s", (method) => {
    expect(readHead(bytes(request([HOST], `${method} /hooks/a?b=c HTTP/1.1`)))).toMatchObject({
      method,
      target: "/hooks/a?b=c",
      bodyBytes: 0,
    });
  });

  it("is parsed with the value of its Connection header", () => {
    const closes = (line: string) => readHead(bytes(request([HOST, line])))?.closes;
    expect([closes("Connection: close"), closes("Connection: Keep-Alive")]).toEqual([true, false]);
  });

  it("without Content-Length has no body", () => {
    expect(readHead(bytes(request([HOST])))).toMatchObject({ bodyBytes: 0 });
  });

  it("may contain header names that are also properties of JavaScript objects, such as __proto__", () => {
    const head = readHead(bytes(request([HOST, "__proto__: a", "constructor: b"])));
    expect(Object.entries(head?.headers ?? {})).toEqual([
      ["host", "inlet.example"],
      ["__proto__", "a"],
      ["constructor", "b"],
    ]);
  });

  const left: readonly (readonly [why: string, text: string])[] = [
    ["is incomplete", request([HOST]).slice(0, -1)],
    ["is longer than 4 KiB", request([HOST, `X-Long: ${"a".repeat(4096)}`])],
    ["has another method", request([HOST], "HEAD /hooks/a HTTP/1.1")],
    ["has an older version", request([HOST], "POST /hooks/a HTTP/1.0")],
    ["has a target in absolute form", request([HOST], "POST http://inlet.example/hooks/a HTTP/1.1")],
    ["has a space in its target", request([HOST], "POST /hooks/a b HTTP/1.1")],
    ["has bytes beyond ASCII in its target", request([HOST], "POST /hooks/\xe9 HTTP/1.1")],
    ["has another path", request([HOST], "POST /v1/apps HTTP/1.1")],
    ["has escapes in its channel id", request([HOST], "POST /hooks/%61 HTTP/1.1")],
    ["has no host", request(["Accept: */*"])],
    ["has no headers", request([])],
    ["names its host twice", request([HOST, "host: other.example"])],
    ["repeats a header", request([HOST, "X-A: 1", "x-a: 1"])],
    ["gives its length twice", request([HOST, "Content-Length: 1", "Content-Length: 1"])],
    ["gives its length as a list", request([HOST, "Content-Length: 1, 1"])],
    ["gives its length with a sign", request([HOST, "Content-Length: +1"])],
    ["gives its length in other digits", request([HOST, "Content-Length: 0x1"])],
    ["gives an empty length", request([HOST, "Content-Length:"])],
    ["gives a length that exceeds the safe integers", request([HOST, "Content-Length: 0000000000000001"])],
    ["is chunked", request([HOST, "Transfer-Encoding: chunked"])],
    ["is chunked and has a length", request([HOST, "Transfer-Encoding: chunked", "Content-Length: 4"])],
    ["expects 100 Continue", request([HOST, "Expect: 100-continue"])],
    ["upgrades to another protocol", request([HOST, "Upgrade: h2c"])],
    ["has contradictory connection options", request([HOST, "Connection: close, keep-alive"])],
    ["names connection-specific headers", request([HOST, "Connection: keep-alive, X-A"])],
    ["has the older header Proxy-Connection", request([HOST, "Proxy-Connection: close"])],
    ["announces trailers", request([HOST, "Trailer: X-A"])],
    ["sets cookies", request([HOST, "Set-Cookie: a=b"])],
    ["has a folded header line", request([HOST, "X-A: 1", " 2"])],
    ["has a space before a colon", request([HOST, "X-A : 1"])],
    ["has a header without a name", request([HOST, ": 1"])],
    ["has a line without a colon", request([HOST, "X-A"])],
    ["has a control character in a value", request([HOST, "X-A: \x01"])],
    ["has a null in a value", request([HOST, "X-A: \0"])],
    ["has bytes beyond ASCII in a value", request([HOST, "X-A: \xe9"])],
    ["has bytes beyond ASCII in a name", request([HOST, "X-\xe9: 1"])],
    ["ends a line without a carriage return", request([HOST, "X-A: 1\nX-B: 2"])],
    ["ends a line without a line feed", request([HOST, "X-A: 1\rX-B: 2"])],
    ["starts with an empty line", `\r\n${request([HOST])}`],
    ["is not HTTP", "\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03"],
    ["is empty", ""],
  ];
  it.each(left)("is not parsed, but left to node:http, if it %s", (_, text) => {
    expect(readHead(bytes(text))).toBeUndefined();
  });

  it("with random content is parsed as node:http parses it, or left to node:http", async () => {
    const oneOf = (...texts: readonly string[]) => fc.constantFrom(...texts);
    const mayBe = (usual: fc.Arbitrary<string>, rare: fc.Arbitrary<string>) =>
      fc.oneof({ weight: 30, arbitrary: usual }, { weight: 1, arbitrary: rare });
    const anyByte = fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code));
    const visible = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code));
    const token = fc.stringMatching(/^[!#$%&'*+.^_`|~\dA-Za-z-]{1,12}$/);
    const space = mayBe(oneOf("", " "), oneOf("\t", "  ", "\r", "\0", "\x0b", "\xa0"));
    const name = mayBe(
      fc.oneof(token, oneOf("Accept", "Cookie", "Keep-Alive", "X-Forwarded-For", "TE", "Authorization")),
      fc.oneof(
        anyByte,
        oneOf(
          "Transfer-Encoding",
          "Content-Length",
          "Host",
          "Connection",
          "Upgrade",
          "Set-Cookie",
          "__proto__",
        ),
      ),
    );
    const value = mayBe(
      fc.string({ unit: fc.oneof(visible, oneOf(" ", "\t", ":")), maxLength: 20 }),
      fc.oneof(anyByte, oneOf("chunked", "keep-alive", "close", "h2c", "5", "\r\n a")),
    );
    const lineEnd = mayBe(fc.constant("\r\n"), oneOf("\n", "\r", "\r\r\n", "\r\n ", "\r\n\r\n", ""));
    const line = fc
      .tuple(name, mayBe(fc.constant(""), space), fc.constant(":"), space, value, space, lineEnd)
      .map((parts) => parts.join(""));
    const target = mayBe(
      fc.string({ unit: visible, maxLength: 20 }).map((text) => `/hooks/a?${text}`),
      fc.oneof(anyByte, oneOf("*", "/hooks/%61", "/", "http://a.example/", "/a b", "/\xe9")),
    );
    const version = mayBe(fc.constant("HTTP/1.1"), oneOf("HTTP/1.0", "HTTP/1.1 ", "HTTP/2.0", "http/1.1"));
    const length = mayBe(fc.nat(40).map(String), oneOf("", "-1", "+1", "1 1", "1,1", "0x10", "007", "1.0"));
    const message = fc
      .tuple(
        mayBe(oneOf("POST", "PUT", "PATCH", "GET", "DELETE"), oneOf("HEAD", "post", "P")),
        target,
        version,
        fc.array(line),
        length,
      )
      .map(
        ([method, path, protocol, lines, bytesLong]) =>
          `${method} ${path} ${protocol}\r\n${HOST}\r\n${lines.join("")}Content-Length: ${bytesLong}\r\n\r\n`,
      );
    let read = 0;
    await fc.assert(
      fc.asyncProperty(message, async (text) => {
        const head = readHead(bytes(text));
        if (head === undefined) return;
        read++;
        const body = text.slice(head.bytes, head.bytes + head.bodyBytes).padEnd(head.bodyBytes, "b");
        expect(await readByNode(text.slice(0, head.bytes) + body)).toEqual({
          method: head.method,
          url: head.target,
          headers: Object.entries(head.headers)
            .map(([name, value]) => `${name}: ${value}`)
            .sort(),
          body,
        });
      }),
      { numRuns: 1_000 },
    );
    expect(read).toBeGreaterThan(200);
  });
});
