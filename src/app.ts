import { Hono } from "hono";
import { type ConsoleDeps, createConsole } from "./http/console.ts";
import type { App } from "./http/context.ts";
import { createDocs } from "./http/docs/docs.ts";
import { answerErrors } from "./http/errors.ts";
import { createHealth, type HealthDeps, type HealthEnv } from "./http/health.ts";
import type { ReceiveHook } from "./http/hook-exchange.ts";
import { createHooks, getRoutePath } from "./http/hooks.ts";
import { oneHost, requestId } from "./http/request.ts";
import type { Clock } from "./lib/clock.ts";
import type { McpDeps } from "./mcp/mcp.ts";
import type { ApiDeps } from "./resources/resources.ts";

export interface AppDeps {
  readonly clock: Clock;
  readonly health: HealthDeps;
  /** `undefined` if this gateway does not have the role. */
  readonly receiveHook: ReceiveHook | undefined;
  readonly api: (ApiDeps & Omit<McpDeps, "fetch"> & { readonly console: ConsoleDeps }) | undefined;
}

/** Creates the handler of all requests. Loads the API only if the gateway serves it, because its modules and schemas take 10 MiB. */
export async function createApp({ clock, health, receiveHook, api }: AppDeps): Promise<App> {
  const app = new Hono<HealthEnv>({ getPath: getRoutePath });
  // Before the middleware, because hooks write their own headers and errors.
  if (receiveHook) app.route("/", createHooks(receiveHook));
  app.use(requestId(clock), oneHost);
  app.route("/", createHealth(health));
  if (api) {
    const [{ createApi }, { createMcp }] = await Promise.all([
      import("./resources/resources.ts"),
      import("./mcp/mcp.ts"),
    ]);
    app.route("/v1", createApi(api));
    app.route("/", createMcp({ ...api, fetch: (request, c) => app.fetch(request, c.env) }));
    app.route("/", createDocs(api));
    app.route("/", createConsole(api.console));
  }
  answerErrors(app);
  return { fetch: app.fetch, receiveHook };
}
