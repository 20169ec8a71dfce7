import { openJobQueue } from "../bus/jobs/job-queue.ts";
import type { ChangeSubscriptions } from "../data/changes.ts";
import type { FindRetry, PendingRetry, SendAgain } from "../event/handler.ts";
import { createAttempt } from "../handlers/attempt.ts";
import { createFilter } from "../handlers/filter.ts";
import {
  type Handlers,
  type HandlersDeps,
  type HandlersTiming,
  startHandlers,
} from "../handlers/handlers.ts";
import { createRetryQueue } from "../handlers/retry-queue.ts";
import { createValidatorFor } from "../ingest/validators.ts";
import type { CredentialsOf } from "../net/credentials.ts";
import type { Foundation } from "./foundation.ts";

export interface OpenHandlersDeps
  extends Pick<
    Foundation,
    "db" | "redis" | "keyring" | "outbound" | "schemas" | "metrics" | "clock" | "redisClock" | "log"
  > {
  readonly changes: ChangeSubscriptions;
  readonly appended: HandlersDeps["appended"];
  readonly credentialsOf: CredentialsOf;
  readonly timing: Partial<HandlersTiming>;
}

/** Sends events to handlers. Every gateway can schedule a retry, but only gateways with the role `delivery` call `start`. */
export interface OpenedHandlers extends AsyncDisposable {
  readonly sendAgain: SendAgain;
  readonly findRetry: FindRetry;
  readonly start: () => Handlers;
}

export function openHandlers(deps: OpenHandlersDeps): OpenedHandlers {
  const { redis, log, metrics, redisClock } = deps;
  const queue = openJobQueue<PendingRetry>({ redis, name: "handlers", aheadMs: redisClock.aheadMs, log });
  const retries = createRetryQueue(queue);
  return {
    sendAgain: retries.sendAgain,
    findRetry: retries.findRetry,
    start: () =>
      startHandlers({
        ...deps,
        queue,
        retries,
        attempt: createAttempt(deps),
        filter: createFilter({ validatorFor: createValidatorFor(deps.schemas) }),
        onIgnored: () => metrics.handlerIgnored.inc(),
        observe({ kind, attempt: { status, durationMs } }) {
          metrics.handlerAttempts.add(kind, status === null ? "none" : `${Math.floor(status / 100)}xx`);
          metrics.handlerSeconds.observe(durationMs / 1000, kind);
        },
      }),
    [Symbol.asyncDispose]: () => queue[Symbol.asyncDispose](),
  };
}
