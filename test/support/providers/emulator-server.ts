import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { listenLocally } from "../local-server.ts";
import type {
  DeliveryResult,
  Emulator,
  EmulatorOptions,
  Fault,
  Hook,
  RecordedRequest,
  Step,
} from "./emulator.ts";
import type { Answer, Call, Message, Outgoing, Provider, ProviderContext, Reply, Route } from "./provider.ts";

/** Token endpoint (RFC 6749, section 4.4) that issues the token in the parameter `token` of its URL. */
export const TOKEN_PATH = "/oauth2/token";

/** Starts the HTTP server of a provider: routes, tokens, faults, records, expiry and deliveries. */
export async function startEmulator<H extends Hook>(
  { clock, appSecret = "secret-of-the-app" }: EmulatorOptions,
  createProvider: (context: ProviderContext<H>) => Provider<H>,
): Promise<Emulator> {
  const requests: RecordedRequest[] = [];
  const stored = new Map<string, H>();
  const faults: { readonly step: Step; readonly fault: Fault }[] = [];
  const background = new Set<Promise<unknown>>();
  let numbers = 1_000;
  let quota: number | undefined;
  let last: Omit<Message, "nowMs"> | undefined;

  const server = createServer((request, response) => void respond(request, response));
  const local = await listenLocally(server);
  const token = `token-${randomUUID()}`;
  const limitedToken = `limited-${randomUUID()}`;
  const isAlive = ({ expiresAtMs = Number.POSITIVE_INFINITY }: H): boolean => expiresAtMs > clock();
  const list = (): readonly H[] => [...stored.values()].filter(isAlive);
  const provider = createProvider({
    nowMs: clock,
    origin: local.origin,
    token,
    appSecret,
    nextNumber: () => ++numbers,
    quota: () => quota ?? provider.quota ?? Number.POSITIVE_INFINITY,
    hooks: {
      list,
      find: (id) => list().find((hook) => hook.id === id),
      put(hook) {
        stored.set(hook.id, hook);
        return hook;
      },
      remove(id) {
        const found = list().some((hook) => hook.id === id);
        return found && stored.delete(id ?? "");
      },
    },
    withHook: (handle) => (call) => {
      const { id = "" } = call.params;
      const hook = list().find((one) => one.id === id);
      return hook === undefined ? (provider.gone?.(id) ?? provider.notFound) : handle(hook, call);
    },
    send,
  });
  const readToken = provider.readToken ?? readBearer;

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const recorded = {
      method: request.method ?? "",
      path: request.url ?? "",
      headers: Object.fromEntries(
        Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
      ),
      body: await text(request),
    };
    const url = new URL(recorded.path, local.origin);
    if (url.pathname === TOKEN_PATH) {
      write(response, {
        status: 200,
        body: { access_token: url.searchParams.get("token"), token_type: "bearer", expires_in: 3_600 },
      });
      return;
    }
    requests.push(recorded);
    for (const route of provider.routes) {
      const params = matchRoute(route.on, recorded.method, url.pathname);
      if (params === undefined) continue;
      const call = createCall(recorded, url, params);
      const fault = takeFault(typeof route.step === "string" ? route.step : route.step(call));
      if (fault?.delayMs !== undefined) await wait(fault.delayMs);
      if (fault?.lost === "request") return void request.socket.destroy();
      const answer =
        fault?.status === undefined
          ? await act(route, call)
          : { ...fault, status: fault.status, ...(fault.echoes && { body: echo(recorded) }) };
      if (fault?.lost === "response") request.socket.destroy();
      else write(response, answer);
      if (answer.after !== undefined) runInBackground(answer.after());
      return;
    }
    write(response, provider.notFound);
  }

  async function act(route: Route, call: Call): Promise<Answer & { after?: Answer["after"] }> {
    const { unauthorized, forbidden } = provider;
    switch (readToken(call)) {
      case token:
        return route.handle(call);
      case limitedToken:
        return typeof forbidden === "function" ? forbidden(call) : forbidden;
      default:
        return unauthorized;
    }
  }

  function takeFault(step: Step): Fault | undefined {
    const index = faults.findIndex((one) => one.step === step);
    return index < 0 ? undefined : faults.splice(index, 1)[0]?.fault;
  }

  function runInBackground(work: Promise<unknown>): void {
    const done = work.finally(() => background.delete(done));
    background.add(done);
  }

  async function sendAll(message: Omit<Message, "nowMs">): Promise<readonly DeliveryResult[]> {
    const receives =
      provider.receives ??
      (({ events }, event) => event === undefined || events === undefined || events.includes(event));
    const receivers = list().filter((hook) => receives(hook, message.event));
    return Promise.all(
      receivers.map(async (hook) => {
        const event = message.event ?? hook.events?.[0];
        const outgoing = await provider.sign(hook, { ...message, event, nowMs: clock() });
        return { hook, status: (await send(hook.address, outgoing)).status };
      }),
    );
  }

  return {
    url: local.origin,
    token,
    limitedToken,
    requests,
    hooks: list,
    addForeign(address) {
      const hook = provider.makeForeign(address);
      stored.set(hook.id, hook);
      return hook;
    },
    drop: (id) => void stored.delete(id),
    failNext(step, fault, times = 1) {
      for (let time = 0; time < times; time++) faults.push({ step, fault });
    },
    setQuota(most) {
      quota = most;
    },
    deliver(payload, event) {
      last = { id: randomUUID(), payload, event };
      return sendAll(last);
    },
    async redeliver() {
      if (last === undefined) throw new Error("deliver() must be called before redeliver()");
      return sendAll(last);
    },
    async [Symbol.asyncDispose]() {
      await local[Symbol.asyncDispose]();
      await Promise.allSettled(background);
    },
  };
}

const createCall = (recorded: RecordedRequest, url: URL, params: Call["params"]): Call => ({
  ...recorded,
  url,
  params,
  form: new URLSearchParams(recorded.body),
  read: (schema) => schema.safeParse(parseJson(recorded.body)).data,
});

/** Returns the user name or the password of basic authentication. */
export function readBasic({ headers }: RecordedRequest, part: "user" | "password"): string | undefined {
  const encoded = /^basic (.+)$/i.exec(headers.authorization ?? "")?.[1];
  if (encoded === undefined) return undefined;
  const [user, password] = Buffer.from(encoded, "base64").toString().split(":", 2);
  return part === "user" ? user : password;
}

export function readBearer({ headers }: RecordedRequest): string | undefined {
  return /^bearer (.+)$/i.exec(headers.authorization ?? "")?.[1];
}

const echo = ({ body, headers: { authorization } }: RecordedRequest): object => ({ body, authorization });

function matchRoute(on: string, method: string, path: string): Readonly<Record<string, string>> | undefined {
  const [ofMethod, pattern = ""] = on.split(" ");
  if (method !== ofMethod) return undefined;
  const match = new RegExp(`^${pattern.replace(/:(\w+)/g, "(?<$1>[^/]+)")}$`).exec(path);
  if (match === null) return undefined;
  const groups = Object.entries(match.groups ?? {});
  return Object.fromEntries(groups.map(([name, value]) => [name, decodeURIComponent(value)]));
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function write(response: ServerResponse, { status, body, headers }: Answer): void {
  if (body === undefined || typeof body === "string") {
    response.writeHead(status, headers).end(body);
    return;
  }
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

async function send(
  address: string,
  { method = "POST", query = {}, headers, body }: Outgoing,
): Promise<Reply> {
  const url = new URL(address);
  for (const [name, value] of Object.entries(query)) url.searchParams.append(name, value);
  try {
    const response = await fetch(url, {
      method,
      redirect: "manual",
      ...(headers && { headers }),
      ...(body === undefined ? {} : { body }),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  } catch {
    return { status: 0, headers: new Headers(), text: "" };
  }
}
