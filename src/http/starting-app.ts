import { Hono } from "hono";
import type { Clock } from "../lib/clock.ts";
import type { Fetch } from "./context.ts";
import { ApiError, answerErrors } from "./errors.ts";
import { createHealth, type HealthDeps, type HealthEnv } from "./health.ts";
import { oneHost, requestId } from "./request.ts";

/** Responds while the gateway starts. Health checks work, and all other requests receive 503. */
export function createStartingApp({
  clock,
  health,
}: {
  readonly clock: Clock;
  readonly health: HealthDeps;
}): Fetch {
  const app = new Hono<HealthEnv>();
  app.use(requestId(clock), oneHost);
  app.route("/", createHealth(health));
  app.all("*", () => {
    throw new ApiError("unavailable", "Inlet is starting. Try again.", { headers: { "retry-after": "1" } });
  });
  answerErrors(app);
  return app.fetch;
}
