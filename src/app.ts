import { Hono } from "hono";
import { createHooks, type HooksDeps } from "./channels/push/hooks.ts";
import type { ChannelHandle } from "./event/ingest.ts";
import { type ConsoleDeps, createConsole } from "./http/console.ts";
import type { App, Fetch } from "./http/context.ts";
import { createDocs } from "./http/docs/docs.ts";
import { createHealth, type HealthDeps, type HealthEnv } from "./http/health.ts";
import { ApiError, answerErrors } from "./http/problem.ts";
import { oneHost, requestId } from "./http/request.ts";
import type { Clock } from "./lib/clock.ts";
import { type ApiDeps, createApi } from "./resources/resources.ts";

/** Serves requests while the gateway starts: only health checks work, and every other request receives 503. */
export function createStartingApp({ clock, health }: Pick<AppDeps<never>, "clock" | "health">): Fetch {
  const app = new Hono<HealthEnv>();
  app.use(requestId(clock), oneHost);
  app.route("/", createHealth(health));
  app.all("*", () => {
    throw new ApiError("unavailable", "Inlet is starting. Try again.", { headers: { "retry-after": "1" } });
  });
  answerErrors(app);
  return app.fetch;
}

export interface AppDeps<C extends ChannelHandle> {
  readonly clock: Clock;
  readonly health: HealthDeps;
  /** `undefined` if this gateway does not have the role. */
  readonly hooks: HooksDeps<C> | undefined;
  readonly api: (ApiDeps & { readonly console: ConsoleDeps }) | undefined;
}

export function createApp<C extends ChannelHandle>({ clock, health, hooks, api }: AppDeps<C>): App {
  const app = new Hono<HealthEnv>();
  app.use(requestId(clock), oneHost);
  app.route("/", createHealth(health));
  if (api) {
    app.route("/v1", createApi(api));
    app.route("/", createDocs(api));
    app.route("/", createConsole(api.console));
  }
  answerErrors(app);
  return { fetch: app.fetch, answerDirectly: hooks && createHooks(hooks) };
}
