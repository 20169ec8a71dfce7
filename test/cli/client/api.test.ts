import { createServer, type RequestListener } from "node:http";
import { afterEach, expect, it } from "vitest";
import { createApi } from "../../../src/cli/client/api.ts";
import { type LocalServer, listenLocally } from "../../support/local-server.ts";

const servers: LocalServer[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server[Symbol.asyncDispose]())));

async function listen(onRequest: RequestListener): Promise<string> {
  const server = await listenLocally(createServer(onRequest));
  servers.push(server);
  return server.origin;
}

const apiAt = (baseUrl: string) => createApi({ baseUrl, apiKey: "a-key" }, new AbortController().signal);

it("the API client sends its API key only to the configured address, and does not follow redirects", async () => {
  let seen = 0;
  const elsewhere = await listen((_, response) => {
    seen++;
    response.end("[]");
  });
  for (const status of [301, 302, 303, 307, 308]) {
    const origin = await listen((_, response) => response.writeHead(status, { location: elsewhere }).end());
    await expect(apiAt(origin).get("/apps")).rejects.toThrow(`${origin} cannot be reached`);
    await expect(apiAt(origin).post("/apps", {})).rejects.toThrow(`${origin} cannot be reached`);
  }
  expect(seen).toBe(0);
});

it("the API client reads a list page by page until the list ends or the requested number of items is reached", async () => {
  const all = Array.from({ length: 450 }, (_, n) => n);
  const origin = await listen(({ url = "" }, response) => {
    const { searchParams } = new URL(url, "http://list");
    const [limit, offset] = [Number(searchParams.get("limit")), Number(searchParams.get("offset"))];
    response.setHeader("x-total-count", all.length);
    response.end(JSON.stringify(limit > 200 ? undefined : all.slice(offset, offset + limit)));
  });
  const api = apiAt(origin);
  expect(await api.list("/numbers")).toEqual({ items: all, total: 450 });
  expect(await api.list("/numbers", {}, 250)).toEqual({ items: all.slice(0, 250), total: 450 });
});

it("the API client repeats a read if the gateway is busy for a moment, but neither a write nor after a long wait", async () => {
  const requests: string[] = [];
  let wait = "0";
  const origin = await listen(({ method = "" }, response) => {
    requests.push(method);
    const isBusy = requests.length <= 2;
    response.writeHead(isBusy ? 503 : 200, { "retry-after": wait }).end(isBusy ? "{}" : '"read"');
  });
  expect(await apiAt(origin).get("/busy")).toBe("read");
  expect(requests).toEqual(["GET", "GET", "GET"]);

  requests.length = 0;
  await expect(apiAt(origin).post("/busy", {})).rejects.toThrow("Retry in 0 s");
  expect(requests).toEqual(["POST"]);

  requests.length = 0;
  wait = "60";
  await expect(apiAt(origin).get("/busy")).rejects.toThrow("Retry in 60 s");
  expect(requests).toEqual(["GET"]);
});

it("the API client reports the error of a gateway that stays busy", async () => {
  let requests = 0;
  const origin = await listen((_, response) => {
    requests++;
    response.writeHead(503, { "retry-after": "0" }).end('{"message":"Busy."}');
  });
  await expect(apiAt(origin).get("/busy")).rejects.toThrow("Busy. Retry in 0 s");
  expect(requests).toBe(4);
});
