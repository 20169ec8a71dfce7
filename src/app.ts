import { Hono } from "hono";
import { createHooks, type HooksDeps } from "./channels/hooks.ts";
import { answerErrors } from "./http/answers.ts";
import { createHealth, type HealthDeps, type HealthEnv } from "./http/health.ts";
import { requestId } from "./http/request-id.ts";
import type { Clock } from "./lib/clock.ts";
import { type ApiDeps, createApi } from "./resources/resources.ts";

export interface AppDeps {
  readonly clock: Clock;
  readonly health: HealthDeps;
  /** Undefined: this gateway has not that role. */
  readonly hooks: HooksDeps | undefined;
  readonly api: ApiDeps | undefined;
}

/** Everything that the gateway answers. The hooks stand first and bare: what all others share would cost each delivery. */
export function createApp({ clock, health, hooks, api }: AppDeps): Hono<HealthEnv> {
  const app = new Hono<HealthEnv>();
  if (hooks) app.route("/hooks", createHooks(hooks));
  app.use(requestId(clock));
  app.route("/", createHealth(health));
  if (api) app.route("/v1", createApi(api));
  answerErrors(app);
  return app;
}
